import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { type DocumentNode, parse, validate } from 'graphql';
import { isPlainlyValid } from '../../dist/graphql/documents/plain-documents.js';
import { createSchema } from '../../dist/graphql/schema/schema.js';

const schema = createSchema();

function isPlain(text: string): boolean {
  return isPlainlyValid(schema, parse(text));
}

/** Fields of a type without fields of their own, and those with: name → type. */
const leaves: Readonly<Record<string, readonly string[]>> = {
  Post: ['id', 'title', 'content', 'status', 'createdAt', 'authorId', '__typename'],
  Author: ['id', 'name', 'email', 'createdAt', '__typename'],
  Comment: ['id', 'content', 'createdAt', 'postId', '__typename'],
};
const branches: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  Post: [
    ['comments', 'Comment'],
    ['author', 'Author'],
  ],
  Author: [['posts', 'Post']],
  Comment: [],
};

function fieldsOf(type: string, depth: number): fc.Arbitrary<string> {
  const names = leaves[type] ?? [];
  const plain = fc.subarray([...names], { minLength: 1 }).map((found) => found.join(' '));
  const deeper = (branches[type] ?? []).map(([name, of]) => {
    if (depth === 0) return fc.constant('');
    return fc.oneof(
      fc.constant(''),
      fieldsOf(of, depth - 1).map((inner) => `${name} { ${inner} }`),
    );
  });
  return fc.tuple(plain, ...deeper).map((parts) => parts.join(' '));
}

const aliases = fc.constantFrom('', 'one: ', 'title: ');
const post = fieldsOf('Post', 3);
/** Valid documents of the plain kind, with all that this kind may have. */
const plainDocuments: fc.Arbitrary<string> = fc.oneof(
  fc.tuple(aliases, post).map(([alias, fields]) => `{ ${alias}allPosts { ${fields} } }`),
  post.map((fields) => `query Q { a: __typename postById(postId: "x") { ${fields} } }`),
  post.map((fields) => `query ($id: String!) { postById(postId: $id) { ${fields} } }`),
  fc.tuple(post, post).map(
    ([one, two]) =>
      `query Q($a: String!, $b: String!) {
        a: postById(postId: $a) { ${one} } b: postById(postId: $b) { ${two} } }`,
  ),
  fc.constantFrom(
    'mutation { createPost(createPostInput: { title: "a", content: """b""" }) }',
    'mutation ($i: CreatePostInput!) { createPost(createPostInput: $i) }',
    'mutation ($t: String!) { createPost(createPostInput: { content: $t, title: $t }) }',
    'mutation ($i: CommentInput!) { addComment(commentInput: $i) __typename }',
    'mutation ($f: Upload!) { upload(file: $f) }',
  ),
);

const words = `id title nothing constructor __proto__ __typename __schema __type comments author
  posts allPosts postById createPost postId content query mutation subscription fragment on Post
  String Int ID CreatePostInput Upload $id $a "x" 1 null true [] { } ( ) [ ] ! : = ... @no
  @include(if:true) @skip(if:$a)`.split(/\s+/);

/** Other texts, by leaving out, doubling, replacing or moving words of this one. */
function change(text: string, steps: readonly Step[]): string {
  const tokens: string[] = text.match(/"""b"""|"[^"]*"|[$@]?\w+|\.\.\.|[^\s\w]/g) ?? [];
  for (const { kind, at, word } of steps) {
    const place = at % Math.max(tokens.length, 1);
    const here = tokens[place] ?? '';
    if (kind === 'drop') tokens.splice(place, 1);
    else if (kind === 'double') tokens.splice(place, 0, here);
    else if (kind === 'replace') tokens[place] = word;
    else if (kind === 'insert') tokens.splice(place, 0, word);
    else tokens.push(...tokens.splice(place, 1));
  }
  return tokens.join(' ');
}

interface Step {
  readonly kind: 'drop' | 'double' | 'replace' | 'insert' | 'move';
  readonly at: number;
  readonly word: string;
}

const steps: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('drop', 'double', 'replace', 'insert', 'move'),
  at: fc.nat({ max: 400 }),
  word: fc.constantFrom(...words),
});

function tryParse(text: string): DocumentNode | undefined {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

describe('a plain document', () => {
  it('is known at a glance', () => {
    fc.assert(
      fc.property(plainDocuments, (text) => {
        assert.deepEqual(validate(schema, parse(text)), []);
        assert.ok(isPlain(text), text);
      }),
    );
  });

  it('is never taken for one where a rule of GraphQL is broken', () => {
    let judged = 0;
    let taken = 0;
    let broken = 0;
    const changes = fc.array(steps, { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(plainDocuments, changes, (text, made) => {
        const document = tryParse(change(text, made));
        if (document === undefined) return;
        judged += 1;
        const errors = validate(schema, document);
        if (errors.length > 0) broken += 1;
        if (!isPlainlyValid(schema, document)) return;
        taken += 1;
        assert.deepEqual(errors, []);
      }),
      { numRuns: 5_000 },
    );
    assert.ok(judged > 500 && taken > 20 && broken > 200, `${judged} ${taken} ${broken}`);
  });
});

describe('what is left to the rules of GraphQL', () => {
  const cases: Readonly<Record<string, string>> = {
    'two operations': 'query A { __typename } query B { __typename }',
    'a subscription': 'subscription { commentAdded { id } }',
    'a definition of a type': 'type A { b: Int }',
    'a fragment': '{ allPosts { ...P } } fragment P on Post { id }',
    'an inline fragment': '{ allPosts { ... { id } } }',
    'a directive of a field': '{ allPosts @include(if: true) { id } }',
    'a directive of an operation': 'query Q @no { __typename }',
    'a directive of a variable': 'query Q($a: String! @no) { postById(postId: $a) { id } }',
    'questions about the schema': '{ __schema { queryType { name } } }',
    'an unknown field': '{ nothing }',
    'a field by the name of what objects have': '{ constructor toString hasOwnProperty }',
    'a member of a leaf': '{ allPosts { id { id } } }',
    'a type without members': '{ allPosts }',
    'members of __typename': '{ __typename { id } }',
    'arguments of __typename': '{ __typename(a: "b") }',
    'two answers of one name': '{ allPosts { id id: title } }',
    'the same field twice': '{ allPosts { id id } }',
    'an unknown argument': '{ allPosts(a: "b") { id } }',
    'an argument too few': '{ postById { id } }',
    'an argument twice': '{ postById(postId: "a", postId: "b") { id } }',
    'a number for a text': '{ postById(postId: 1) { id } }',
    'a null for a text': '{ postById(postId: null) { id } }',
    'a list for a text': '{ postById(postId: ["a"]) { id } }',
    'an object for a text': '{ postById(postId: { a: "b" }) { id } }',
    'a text for an object': 'mutation { createPost(createPostInput: "a") }',
    'a text for a file': 'mutation { upload(file: "a") }',
    'a member too few': 'mutation { createPost(createPostInput: { title: "a" }) }',
    'a member too many':
      'mutation { createPost(createPostInput: { title: "a", content: "b", c: "d" }) }',
    'a member twice':
      'mutation { createPost(createPostInput: { title: "a", title: "b", content: "c" }) }',
    'an unknown variable': '{ postById(postId: $a) { id } }',
    'a variable that is not used': 'query ($a: String) { __typename }',
    'a variable twice': 'query ($a: String!, $a: String!) { postById(postId: $a) { id } }',
    'a variable of an unknown type': 'query ($a: No!) { postById(postId: $a) { id } }',
    'a variable of a type of answers': 'query ($a: Post!) { postById(postId: $a) { id } }',
    'a variable of another type': 'query ($a: ID!) { postById(postId: $a) { id } }',
    'a variable that may be null': 'query ($a: String) { postById(postId: $a) { id } }',
    'a variable with a default': 'query ($a: String! = "b") { postById(postId: $a) { id } }',
    'a list of texts': 'query ($a: [String!]!) { postById(postId: $a) { id } }',
  };

  for (const [name, text] of Object.entries(cases)) {
    it(name, () => {
      assert.equal(isPlain(text), false);
    });
  }
});
