/** R44: comments on a post that is not published are events for those alone who may read it. */

import { describe, it } from 'node:test';
import { followAll, hear, openBlog, type Person } from '../support/drafts.ts';
import { after } from '../support/resuming.ts';
import { stores } from '../support/stores.ts';

const isInsider = (person: Person): boolean => person === 'author' || person === 'admin';

for (const place of stores) {
  describe(`a draft on a store ${place.name}`, { skip: place.skip }, () => {
    it('has events for its author and administrators, and for all while it is published', async (t) => {
      const blog = await openBlog(t, place, 'owners');
      const [open, draft] = [await blog.post('PUBLISHED'), await blog.post('DRAFT')];
      const first = await blog.comment(open, 'first');
      const all = await followAll(t, blog, '');
      const ofDraft = await followAll(t, blog, `postId: "${draft}"`);
      const resumed = await followAll(t, blog, after(first));
      /** Before the status changes, so that nobody gets by it what was stored before. */
      const heard = async (words: readonly string[], hidden: readonly string[]): Promise<void> => {
        for (const followed of [all, resumed]) {
          await hear(followed, (person) => (isInsider(person) ? [...hidden, ...words] : words));
        }
        await hear(ofDraft, (person) => (isInsider(person) ? hidden : []));
      };
      await blog.comment(draft, 'hidden');
      await blog.comment(open, 'open');
      await heard(['open'], ['hidden']);
      await blog.setStatus(draft, 'PUBLISHED');
      await blog.comment(draft, 'published', 'other');
      for (const followed of [all, resumed, ofDraft]) await hear(followed, () => ['published']);
      await blog.setStatus(draft, 'PENDING_MODERATION');
      await blog.comment(draft, 'hidden again');
      await blog.comment(open, 'last');
      await heard(['last'], ['hidden again']);
      await blog.setStatus(draft, 'PUBLISHED');
      await blog.comment(draft, 'end');
      for (const followed of [all, resumed, ofDraft]) await hear(followed, () => ['end']);
    });

    it('has comments that are left out of what is missed, and no place to resume from', async (t) => {
      const blog = await openBlog(t, place, 'owners');
      const [open, draft] = [await blog.post('PUBLISHED'), await blog.post('DRAFT')];
      const first = await blog.comment(open, 'first');
      const hidden = await blog.comment(draft, 'hidden');
      await blog.comment(open, 'second');
      const gone = await blog.comment(open, 'gone');
      await blog.send('DELETE', `/comments/${gone}`);
      await hear(await followAll(t, blog, after(first)), (person) =>
        isInsider(person) ? ['hidden', 'second'] : ['second'],
      );
      await hear(await followAll(t, blog, after(hidden)), (person) =>
        isInsider(person) ? ['second'] : ['NOT_FOUND'],
      );
      await hear(await followAll(t, blog, after(gone)), () => ['NOT_FOUND']);
      await blog.setStatus(draft, 'PUBLISHED');
      await hear(await followAll(t, blog, after(hidden)), () => ['second']);
      await hear(await followAll(t, blog, after(first, draft)), () => ['hidden']);
    });
  });
}
