// Lists the posts of a server on another origin, adds comments, and shows each comment of anybody when it
// arrives. Plain browser code: nothing to install, nothing to build.

const server = new URLSearchParams(location.search).get('server') ?? 'http://localhost:8080';
const state = document.querySelector('#state');
const lists = new Map();

async function loadPosts() {
  const response = await fetch(`${server}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({
      query: '{ allPosts { id title content comments { id content } } }',
    }),
  });
  const { data, errors } = await response.json();
  if (errors !== undefined) throw new Error(errors[0].message);
  lists.clear();
  document.querySelector('#posts').replaceChildren();
  for (const post of data.allPosts) showPost(post);
  state.textContent = `Connected to ${server}`;
}

function showPost({ id, title, content, comments }) {
  const article = document.querySelector('#post').content.cloneNode(true);
  article.querySelector('h2').textContent = title;
  article.querySelector('p').textContent = content;
  const form = article.querySelector('form');
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    addComment(id, form.elements.content.value).then(
      () => form.reset(),
      (error) => (state.textContent = error.message),
    );
  });
  lists.set(id, article.querySelector('ul'));
  document.querySelector('#posts').append(article);
  for (const comment of comments) showComment({ ...comment, postId: id });
}

async function addComment(postId, content) {
  const response = await fetch(`${server}/posts/${postId}/comments`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ content }),
  });
  if (!response.ok) throw new Error((await response.json()).error);
}

/** A comment can come twice: with the posts, and as an event. */
function showComment({ id, content, postId }) {
  const key = `comment-${id}`;
  if (document.getElementById(key) !== null) return;
  const item = document.createElement('li');
  item.id = key;
  item.textContent = content;
  lists.get(postId)?.append(item);
}

/** Subscribes first and loads then, so that no comment is missed in between. */
function watchComments() {
  const url = new URL('/graphql', server);
  url.searchParams.set('query', 'subscription { commentAdded { id content postId } }');
  const events = new EventSource(url);
  events.addEventListener('open', () => {
    loadPosts().catch((error) => (state.textContent = error.message));
  });
  events.addEventListener('next', (event) => {
    const { data } = JSON.parse(event.data);
    // Without data: the last comment was removed, and the browser connects anew.
    if (data) showComment(data.commentAdded);
  });
  // The browser connects again by itself, and sends the id of the last event that it has got.
  events.addEventListener('error', () => {
    state.textContent = lists.size
      ? 'Connecting again …'
      : `${server} does not answer, or its ALLOWED_ORIGINS do not name ${location.origin}.`;
  });
}

watchComments();
