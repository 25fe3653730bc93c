/** Those who moderate a blog (R48, R52). */

import type { Blog, Person } from './drafts.ts';

export type Json = Readonly<Record<string, unknown>>;

export const moderated = (REQUIRE_AUTH: string) => ({
  env: { REQUIRE_AUTH, COMMENTS: 'moderated' },
});
export const missing = '00000000-0000-7000-8000-0000000000ff';

export async function ask(blog: Blog, query: string, as: Person): Promise<Json> {
  const response = await blog.send('POST', '/graphql', { body: { query }, as });
  return (await response.json()) as Json;
}
export const read = async (blog: Blog, path: string, as: Person = 'anonymous'): Promise<unknown> =>
  (await blog.nodes[1].fetch(path, { headers: blog.people[as] })).json();
export const contents = async (blog: Blog, path: string, as?: Person): Promise<string> =>
  ((await read(blog, path, as)) as { content: string }[]).map(({ content }) => content).join(' ');
