// Shows the posts of a server on another origin, page by page, adds comments, and shows each comment of anybody
// when it arrives. Plain browser code: nothing to install, nothing to build.

const server = new URLSearchParams(location.search).get('server') ?? 'http://localhost:8080';
const postsAPage = 10;
const commentsAPage = 20;
const retryMilliseconds = 5_000;

const state = document.querySelector('#state');
const posts = document.querySelector('#posts');
const older = document.querySelector('#older');
/** The articles of the page by the ids of their posts. An article stays, and so does what is typed in it. */
const articles = new Map();

const fields = `id title content createdAt comments(first: ${commentsAPage}) { id content }`;
const pageOfPosts = `query ($after: ID) { allPosts(first: ${postsAPage}, after: $after) { ${fields} } }`;
const onePost = `query ($id: String!) { postById(postId: $id) { ${fields} } }`;
const pageOfComments = `query ($id: String!, $after: String) {
  postById(postId: $id) { comments(first: ${commentsAPage}, after: $after) { id content } }
}`;

async function send(path, body, headers = {}) {
  const response = await fetch(`${server}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  }).catch(() => undefined);
  if (response === undefined) throw new Error(`${server} cannot be reached.`);
  // A proxy in between may answer without JSON.
  const result = await response.json().catch(() => undefined);
  if (!response.ok) throw new Error(result?.error ?? `${server} answers ${response.status}.`);
  if (result?.errors !== undefined) throw new Error(result.errors[0].message);
  return result?.data;
}

/** Tells what goes wrong, instead of letting it be an unhandled rejection. */
async function attempt(what, act) {
  try {
    await act();
    state.textContent = `Connected to ${server}`;
  } catch (error) {
    state.textContent = `${what} ${error.message}`;
  }
}

async function loadPosts(after) {
  const { allPosts } = await send('/graphql', { query: pageOfPosts, variables: { after } });
  for (const post of allPosts) showPost(post);
  // The first page comes again after a lost connection, when more pages may be here already.
  const isLast = articles.get(allPosts.at(-1)?.id) === posts.lastElementChild;
  if (isLast) older.hidden = allPosts.length < postsAPage;
}

/** Newest first, as the server lists them. Date-times of one form have the order of their texts. */
function showPost({ id, title, content, createdAt, comments }) {
  let article = articles.get(id);
  if (article === undefined) {
    article = makeArticle(id);
    article.dataset.createdAt = createdAt;
    articles.set(id, article);
    const next = [...posts.children].find((other) => other.dataset.createdAt < createdAt);
    posts.insertBefore(article, next ?? null);
  }
  article.querySelector('h2').textContent = title;
  article.querySelector('p').textContent = content;
  showComments(article, comments, '');
}

function makeArticle(id) {
  const { firstElementChild: article } = document.querySelector('#post').content.cloneNode(true);
  article.dataset.post = id;
  const form = article.querySelector('form');
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void attempt('Your comment is not sent yet:', () => addComment(id, form));
  });
  const more = article.querySelector('.more');
  more.addEventListener('click', () => {
    const { after } = article.dataset;
    void attempt('No more comments:', async () => {
      const variables = { id, after: after || undefined };
      const { postById } = await send('/graphql', { query: pageOfComments, variables });
      showComments(article, postById?.comments ?? [], after);
    });
  });
  return article;
}

/** A page of comments, behind the one with the id `after`; those that have come as events stay behind it. */
function showComments(article, comments, after) {
  const list = article.querySelector('ul');
  let last = document.getElementById(after);
  for (const comment of comments) {
    const item = findOrMakeItem(comment);
    if (last === null) list.prepend(item);
    else last.after(item);
    last = item;
  }
  article.dataset.after = last?.id ?? '';
  article.querySelector('.more').hidden = comments.length < commentsAPage;
}

/** A comment can come twice: with its post, and as an event. */
function findOrMakeItem({ id, content }) {
  const item = document.getElementById(id) ?? document.createElement('li');
  item.id = id;
  item.textContent = content;
  return item;
}

/** The same text that is sent again, because its response was lost, has the same key and is stored once. */
async function addComment(postId, form) {
  const content = form.elements.content.value;
  if (form.dataset.content !== content) {
    form.dataset.content = content;
    form.dataset.key = crypto.getRandomValues(new Uint32Array(4)).join('-');
  }
  const headers = { 'Idempotency-Key': `"${form.dataset.key}"` };
  await send(`/posts/${postId}/comments`, { content }, headers);
  delete form.dataset.content;
  if (form.elements.content.value === content) form.reset();
}

async function showEvent({ id, content, postId }) {
  const article = articles.get(postId);
  if (article !== undefined) {
    if (document.getElementById(id) === null) {
      article.querySelector('ul').append(findOrMakeItem({ id, content }));
    }
    return;
  }
  // A post that was made since, or an older one, which comes with its page.
  const { postById: post } = await send('/graphql', { query: onePost, variables: { id: postId } });
  const oldest = posts.lastElementChild?.dataset.createdAt ?? '';
  if (post && (older.hidden || post.createdAt > oldest)) showPost(post);
}

/** Subscribes first and loads then, so that no comment is missed in between. */
function watchComments() {
  const url = new URL('/graphql', server);
  url.searchParams.set('query', 'subscription { commentAdded { id content postId } }');
  const events = new EventSource(url);
  events.addEventListener('open', () => void attempt('No posts:', () => loadPosts()));
  events.addEventListener('next', (event) => {
    const { data } = JSON.parse(event.data);
    // Without data: the last comment was removed, and the browser connects anew.
    if (data) void attempt('A comment is missing:', () => showEvent(data.commentAdded));
  });
  // The browser connects again by itself, and sends the id of the last event that it has got. It gives up
  // where a server answers otherwise, such as one that stops.
  events.addEventListener('error', () => {
    state.textContent = articles.size
      ? `The connection to ${server} is lost. This page tries again; what you have typed stays.`
      : `${server} does not answer, or its ALLOWED_ORIGINS do not name ${location.origin}.`;
    if (events.readyState === EventSource.CLOSED) setTimeout(watchComments, retryMilliseconds);
  });
}

older.addEventListener('click', () => {
  void attempt('No older posts:', () => loadPosts(posts.lastElementChild?.dataset.post));
});
watchComments();
