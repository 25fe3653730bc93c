"""Posts for `import`, one a line: their HTML becomes the marks that index.html shows.

What has no mark, such as a table, becomes text, and a picture of another host becomes a link.
"""

import json
import re
import sys
from html.parser import HTMLParser

HEADINGS = {'h1': '## ', 'h2': '## ', 'h3': '### ', 'h4': '### ', 'h5': '### ', 'h6': '### '}
LISTS = {'ul': '- ', 'ol': '1. '}
BLOCKS = {*HEADINGS, *LISTS, *'p div pre blockquote figure figcaption hr table tr dt dd section'.split()}
INLINE = {'strong': '**', 'b': '**', 'em': '*', 'i': '*', 'code': '`', 'a': ''}


class Marks(HTMLParser):
    def __init__(self):
        super().__init__()
        self.blocks, self.text, self.heading, self.quotes, self.hidden = [], '', '', 0, False
        self.preformatted = False
        # The outermost list, its items, and how many lists are open.
        self.mark, self.items, self.lists = '', [], 0
        # The outermost element with a mark inside a line: marks inside marks are not shown.
        self.inline = None

    def end_block(self):
        text, self.text, self.inline = self.text, '', None
        if self.preformatted:
            self.blocks.append('```\n' + text.strip('\n').replace('```', "'''") + '\n```')
        elif self.lists:
            item = ' '.join(text.split())
            self.items += [self.mark + item] if item else []
        else:
            # Older posts have no <p>, but empty lines.
            for part in re.split(r'\n\s*\n', text.strip()):
                lines = [line.strip() for line in part.strip().split('\n')]
                if self.heading:
                    lines = [self.heading + ' '.join(lines)]
                if any(lines):
                    self.blocks.append('\n'.join('> ' * bool(self.quotes) + line for line in lines))

    def handle_starttag(self, tag, attributes):
        given = {name: value or '' for name, value in attributes}
        if tag in BLOCKS or tag == 'li':
            self.end_block()
        if tag in HEADINGS:
            self.heading = HEADINGS[tag]
        elif tag in LISTS:
            self.mark = self.mark if self.lists else LISTS[tag]
            self.lists += 1
        elif tag == 'blockquote':
            self.quotes += 1
        elif tag in ('script', 'style'):
            self.hidden = True
        elif tag == 'pre':
            self.preformatted = True
        elif tag == 'br':
            self.text += '\n'
        elif tag == 'td' or tag == 'th':
            self.text += ' '
        elif tag == 'img' and not self.preformatted:
            label = re.sub(r'[][\n]', ' ', given.get('alt', '')) or 'picture'
            if self.inline or not given.get('src'):
                self.text += label
            else:
                here = '!' if given['src'].startswith('/files/') else ''
                self.text += f"{here}[{label}]({to_target(given['src'])})"
        elif tag in INLINE and not self.inline and not self.preformatted:
            self.inline = (tag, len(self.text), given.get('href', ''))

    def handle_endtag(self, tag):
        if tag in BLOCKS or tag == 'li':
            self.end_block()
        if tag in HEADINGS:
            self.heading = ''
        elif tag in LISTS and self.lists:
            self.lists -= 1
            if not self.lists and self.items:
                self.blocks.append('\n'.join(self.items))
                self.items = []
        elif tag == 'blockquote':
            self.quotes = max(0, self.quotes - 1)
        elif tag in ('script', 'style'):
            self.hidden = False
        elif tag == 'pre':
            self.preformatted = False
        elif self.inline and tag == self.inline[0]:
            _, start, target = self.inline
            inner, mark = self.text[start:], INLINE[tag]
            if tag == 'a' and target and inner.strip():
                inner = f"[{re.sub(r'[][]', ' ', inner)}]({to_target(target)})"
            self.text = self.text[:start] + (mark + inner + mark if inner.strip() else inner)
            self.inline = None

    def handle_data(self, data):
        if not self.hidden:
            self.text += data


def to_target(address):
    return address.strip().replace(' ', '%20').replace(')', '%29')


def to_marks(html):
    parser = Marks()
    parser.feed(html)
    parser.close()
    parser.end_block()
    return '\n\n'.join(parser.blocks + ['\n'.join(parser.items)]).strip()


for line in sys.stdin:
    post = json.loads(line)
    post['content'] = to_marks(post['content']) or '-'
    print(json.dumps(post))
