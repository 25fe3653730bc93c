/** Articles as the store has them, from values and back. */

import type { Article, ArticleDraft, JsonObject } from '../../dist/store/model.js';

/** An article as a value. */
export type ArticleValue = JsonObject & { readonly id: number; readonly title: string };

export function toArticle(value: ArticleValue): Article {
  return { id: value.id, json: JSON.stringify(value) };
}

export function toDraft(value: JsonObject): ArticleDraft {
  return { id: value['id'] as number | undefined, json: JSON.stringify(value) };
}

/** The article as a value; undefined for undefined. */
export function valueOf(article: Article | undefined): ArticleValue | undefined {
  return article && (JSON.parse(article.json) as ArticleValue);
}

/** A change of the texts that makes this change of the values, or adds these members. */
export function changing(
  change: JsonObject | ((value: ArticleValue) => JsonObject),
): (_: Article) => Article {
  return ({ id, json }) => {
    const value = JSON.parse(json) as ArticleValue;
    const changed = typeof change === 'function' ? change(value) : { ...value, ...change };
    return { id, json: JSON.stringify(changed) };
  };
}
