"""Posts and comments of a WordPress export (Tools, Export), as lines for `import`."""

import html, json, re, sys
from xml.etree import ElementTree

WP = '{http://wordpress.org/export/1.2/}'
STATUS = {'publish': 'PUBLISHED', 'pending': 'PENDING_MODERATION'}

def text(item, name, other='-'):
    found = item.findtext(name) or ''
    return found if found.strip() else other

def plain(item, name, other='-'):
    found = html.unescape(re.sub('</?[A-Za-z][^>]*>', '', text(item, name, other)))
    return found if found.strip() else other

def date(item, *names):
    found = [item.findtext(WP + name) or '0' for name in names]
    return next((text.replace(' ', 'T') for text in found if not text.startswith('0')), None)

def comments(item):
    for comment in item.iter(WP + 'comment'):
        if comment.findtext(WP + 'comment_approved') == '1':
            yield {'name': plain(comment, WP + 'comment_author', 'Anonymous')[:100],
                   'content': plain(comment, WP + 'comment_content'),
                   'createdAt': date(comment, 'comment_date_gmt', 'comment_date')}

posts = [{
    'key': 'wordpress ' + item.findtext(WP + 'post_id'),
    'title': plain(item, 'title', 'Untitled'),
    'content': text(item, '{http://purl.org/rss/1.0/modules/content/}encoded'),
    'status': STATUS.get(item.findtext(WP + 'status'), 'DRAFT'),
    'createdAt': date(item, 'post_date_gmt', 'post_date'),
    'author': item.findtext('{http://purl.org/dc/elements/1.1/}creator'),
    'comments': sorted(comments(item), key=lambda comment: comment['createdAt'] or ''),
} for item in ElementTree.parse(sys.stdin.buffer).iter('item')
    if item.findtext(WP + 'post_type') == 'post' and item.findtext(WP + 'status') != 'trash']
for post in sorted(posts, key=lambda post: post['createdAt'] or '9'):
    print(json.dumps(post))
