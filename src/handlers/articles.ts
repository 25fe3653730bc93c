/** Articles over REST (Spec §4.6). */

import { decodeArticleDraft, patchArticle, patchArticles } from '../domain/articles.ts';
import type * as PatchModule from '../domain/patch.ts';
import { toArticleId } from '../domain/ids.ts';
import { checkConditions, createEtag } from '../http/etag.ts';
import { parseJson, readJson } from '../http/json.ts';
import { emptyResponse, type Handler, type HttpRequest } from '../http/message.ts';
import { andThen, type MaybePromise } from '../maybe-promise.ts';
import { getFound, getId, type ListRoute, type RecordRoute } from '../records/record-responses.ts';
import type { Article } from '../store/model.ts';
import { getPatchType, jsonPatchType, mergePatchType } from './changes.ts';
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

type ArticleDeps = Pick<
  HandlerDeps,
  'store' | 'viewerOf' | 'responses' | 'records' | 'config' | 'run'
>;

/** The parameter `id` is `{id}` of the path. */
export function createArticleHandlers(deps: ArticleDeps) {
  const { store, viewerOf, responses, records, config, run } = deps;
  const { articles } = store;
  const { bodyBytesMax } = config;
  // Only patches need the two packages, so they are loaded with the first patch.
  let patches: typeof PatchModule | undefined;

  const loadPatches = (): MaybePromise<typeof PatchModule> =>
    patches ?? import('../domain/patch.ts').then((loaded) => (patches = loaded));

  /** Receives a patch, which waits as bytes for the turn of the change. 415 for other `types`. */
  const receivePatch = (request: HttpRequest, types: readonly string[]) => {
    const type = getPatchType(request, types);
    return andThen(loadPatches(), ({ toJsonPatch, toMergePatch }) =>
      andThen(request.readBody(bodyBytesMax), (bytes) => () => {
        request.reserveValues(bytes);
        const body = parseJson(bytes);
        return type === jsonPatchType ? toJsonPatch(body, bodyBytesMax) : toMergePatch(body);
      }),
    );
  };

  const [find, created] = [records.find(route), records.created(route, () => undefined)];
  return {
    list: (request) => records.list(request, undefined, route),
    find: (request) => find(request, undefined),

    create: async (request) => {
      const decode = (body: unknown) => decodeArticleDraft(body, bodyBytesMax);
      const draft = await readJson(request, bodyBytesMax, decode);
      const saved = await articles.save(draft, await findOnce(request, viewerOf));
      return toWritten(await created(request, saved.id, `/articles/${saved.id}`), saved);
    },

    patchAll: async (request) => {
      const parsePatch = await receivePatch(request, collectionTypes);
      const change = (all: readonly Article[]) => {
        const patch = parsePatch();
        checkConditions(request, () => tagOf(responses, all));
        return patchArticles(all, patch, bodyBytesMax);
      };
      return changeOnce(request, deps, async (once) =>
        toWritten(noContent, await articles.changeAll(change, once)),
      );
    },

    // Without a promise if the store needs none: that saves a twentieth of its time.
    patchOne: (request) => {
      const id = getId(request, route);
      return andThen(receivePatch(request, itemTypes), (parsePatch) => {
        const change = (article: Article): Article => {
          const patch = parsePatch();
          checkConditions(request, () => createEtag(article.json));
          return patchArticle(article, patch, bodyBytesMax);
        };
        return changeOnce(request, deps, (once) =>
          andThen(articles.change(id, change, once), (saved) => {
            if (saved !== undefined) return toWritten(noContent, saved);
            // What is no patch is refused with 400 also where there is no article.
            return andThen(run(parsePatch), () => getFound<never>(undefined, route.noun));
          }),
        );
      });
    },

    /** `GET /articles/{id}`, where the `Location` of a new article points (R12). */
    redirect: (request) =>
      emptyResponse(308, ['Location', `/api/articles/${getId(request, route)}`]),
  } satisfies Readonly<Record<string, Handler>>;
}

/** The present tag of the list of all, which is short enough to be changed and to have one. */
function tagOf({ read }: HandlerDeps['responses'], all: readonly Article[]): string {
  const records = read(undefined);
  records.note('articles');
  return createEtag(`[${all.map(route.toJson).join(',')}]`, records.version);
}
