/** Articles over REST (Spec §4.6). */

import { decodeArticleDraft, patchArticle, patchArticles } from '../domain/articles.ts';
import { toArticleId } from '../domain/ids.ts';
import { toJsonPatch, toMergePatch } from '../domain/patch.ts';
import { checkConditions, createEtag, hasConditions, preconditionFailed } from '../http/etag.ts';
import { parseJson, readJson } from '../http/json.ts';
import {
  emptyResponse,
  type Handler,
  type HttpRequest,
  type HttpResponse,
} from '../http/message.ts';
import { getFound, getId, type ListRoute, type RecordRoute } from '../records/record-responses.ts';
import type { Article, ArticleDraft } from '../store/model.ts';
import type { Articles, Once } from '../store/store.ts';
import { changeRecord, getPatchType, jsonPatchType, mergePatchType } from './changes.ts';
import type { HandlerDeps } from './deps.ts';
import { changeOnce, findOnce, toWritten } from './once.ts';

const itemTypes: readonly string[] = [jsonPatchType, mergePatchType];
const collectionTypes: readonly string[] = [jsonPatchType];
const noContent = emptyResponse(204);

const route: ListRoute<Article> & RecordRoute<number, Article> = {
  key: '/api/articles',
  noun: 'article',
  list: ({ articles }) => articles.all,
  find: ({ articles }, id) => articles.find(id),
  toId: toArticleId,
  toJson: ({ json }) => json,
};

/** Receives a patch, which waits as bytes for the turn of the change. 415 for other `types`. */
async function receivePatch(request: HttpRequest, types: readonly string[], bodyBytesMax: number) {
  const type = getPatchType(request, types);
  const bytes = await request.readBody(bodyBytesMax);
  return () => {
    request.reserveValues(bytes);
    const body = parseJson(bytes);
    return type === jsonPatchType ? toJsonPatch(body, bodyBytesMax) : toMergePatch(body);
  };
}

/** The parameter `id` is `{id}` of the path. */
export function createArticleHandlers(deps: HandlerDeps) {
  const { store, viewerOf, responses, records, config, run } = deps;
  const { articles } = store;
  const { bodyBytesMax } = config;
  const get = async (request: HttpRequest): Promise<Article> =>
    getFound(await articles.find(getId(request, route)), route.noun);
  const [find, created] = [records.find(route), records.created(route, () => undefined)];
  return {
    list: (request) => records.list(request, undefined, route),
    find: (request) => find(request, undefined),
    create: async (request) => {
      const draft = await readJson(request, bodyBytesMax, (body) =>
        decodeArticleDraft(body, bodyBytesMax),
      );
      const once = await findOnce(request, viewerOf);
      const saved = await save(articles, { request, draft, once });
      return toWritten(await created(request, saved.id, `/articles/${saved.id}`), saved);
    },
    patchAll: async (request) => {
      const parsePatch = await receivePatch(request, collectionTypes, bodyBytesMax);
      const change = (all: readonly Article[]) => {
        const patch = parsePatch();
        checkConditions(request, () => tagOf(responses, all));
        return noteChanged(request, all, patchArticles(all, patch, bodyBytesMax));
      };
      return changeOnce(request, deps, async (once) =>
        toWritten(noContent, await articles.changeAll(change, once)),
      );
    },
    patchOne: async (request) => {
      const id = getId(request, route);
      const parsePatch = await receivePatch(request, itemTypes, bodyBytesMax);
      const change = (article: Article): Article => {
        const patch = parsePatch();
        checkConditions(request, () => tagOfOne(article));
        return patchArticle(article, patch, bodyBytesMax);
      };
      return changeOnce(request, deps, async (once) => {
        const saved = await articles.change(id, change, once);
        // What is no patch is refused with 400 also where there is no article.
        if (saved === undefined) await run(parsePatch);
        return toWritten(noContent, getFound(saved, route.noun));
      });
    },
    remove: (request) =>
      changeRecord(request, { get, tagOf: tagOfOne, viewerOf, store }, ({ id }, options) =>
        articles.remove(id, options),
      ),
    redirect,
  } satisfies Readonly<Record<string, Handler>>;
}

/** `/articles/{id}`, where the `Location` of a new article points (R12). */
function redirect(request: HttpRequest): HttpResponse {
  return emptyResponse(308, ['Location', `/api/articles/${getId(request, route)}`]);
}

interface Creation {
  readonly request: HttpRequest;
  readonly draft: ArticleDraft;
  readonly once: Once | undefined;
}

/** Saves it. Conditions hold for an article with an id, which may replace another (R15). */
async function save(articles: Articles, { request, draft, once }: Creation) {
  const { id, json } = draft;
  if (!hasConditions(request)) return articles.save(draft, once);
  const mustExist = request.header('if-match') !== undefined;
  if (id === undefined && !mustExist) return articles.save(draft, once);
  if (id === undefined) throw preconditionFailed();
  const replace = (article: Article): Article => {
    checkConditions(request, () => tagOfOne(article));
    return { id, json };
  };
  for (;;) {
    const replaced = await articles.change(id, replace, once);
    if (replaced !== undefined) return replaced;
    if (mustExist) throw preconditionFailed();
    const created = await articles.create({ id, json }, once);
    if (created !== undefined) return created;
  }
}

function noteChanged(request: HttpRequest, before: readonly Article[], after: readonly Article[]) {
  const changed = after.filter((article, index) => article !== before[index]);
  request.changed = changed.map(({ id }) => `${id}`);
  return after;
}

const tagOfOne = ({ json }: Article): string => createEtag(json);

/** The present tag of the list of all, which is short enough to be changed and to have one. */
function tagOf({ read }: HandlerDeps['responses'], all: readonly Article[]): string {
  const records = read(undefined);
  records.note('articles');
  return createEtag(`[${all.map(route.toJson).join(',')}]`, records.version);
}
