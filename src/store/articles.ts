/** What every driver does with the texts of articles. */

import { AppError } from '../errors.ts';
import type { Article, ArticleDraft } from './model.ts';

/** Limit for the characters of all articles in a change of all (R39). */
export const changedLengthMax = 4 * 1024 * 1024;

/** For a change of all articles beyond the limit. */
export function tooLongToChange(): AppError {
  return new AppError('content_too_large', 'All articles together are too long to be patched.');
}

/** The draft with its new id as the last member: it has a title, so that it is not empty. */
export function withId({ json }: ArticleDraft, id: number): Article {
  return { id, json: `${json.slice(0, -1)},"id":${id}}` };
}
