/**
 * What moves on the front page: its own address in the example, and each comment when it arrives. The button comments
 * on a post of the demo data, so that it is not there where a blog is in use.
 */

const shownMax = 4;
const silentMilliseconds = 40_000;
const demoPost = '/posts/019b8d5e-9c00-7000-8000-000000000103';
const remarks = [
  'Well said.',
  'It came by itself, without a reload.',
  'Open this page twice, and press once.',
  'Stored first, announced second.',
];

const refusals = {
  401: 'Comments need an account on this server.',
  429: 'Too many comments at once. Please wait a minute.',
};
const fields = 'postId name content author { name }';

const live = document.querySelector('#live');
const list = live.querySelector('ol');
const state = live.querySelector('output');
const button = live.querySelector('button');
/** Of the last event. */
let after;

document.querySelector('#address').textContent = location.origin;

const query = `subscription ($after: String) { commentAdded(after: $after) { ${fields} } }`;

function watch() {
  const url = new URL('/graphql', location.origin);
  url.searchParams.set('query', query);
  url.searchParams.set('variables', JSON.stringify({ after }));
  const events = new EventSource(url);
  let alarm;
  const connectAgain = () => {
    clearTimeout(alarm);
    events.close();
    state.textContent = 'The connection is lost. This page tries again.';
    setTimeout(watch, 2_000 + 3_000 * Math.random());
  };
  // A connection that has gone silent has no other end.
  const isAlive = () => {
    clearTimeout(alarm);
    alarm = setTimeout(connectAgain, silentMilliseconds);
  };
  for (const type of ['open', 'ping', 'next']) events.addEventListener(type, isAlive);
  events.addEventListener('open', () => {
    live.hidden = false;
    state.textContent = 'Connected. The next comment appears here.';
    // What was there before the first event.
    if (after === undefined) void loadNewest();
  });
  events.addEventListener('next', ({ data, lastEventId }) => {
    after = lastEventId || undefined;
    const comment = JSON.parse(data).data?.commentAdded;
    if (comment) void show(comment);
  });
  // A server that is away, or whose comments are read with a token alone: then the list is never shown.
  events.addEventListener('error', () => {
    if (!live.hidden) connectAgain();
    else events.close();
  });
}

async function loadNewest() {
  const newest = `{ comments(first: ${shownMax}, status: PUBLISHED) { ${fields} post { rawTitle } } }`;
  const response = await fetch(`/graphql?query=${encodeURIComponent(newest)}`).catch(
    () => undefined,
  );
  const { data } = (await response?.json().catch(() => undefined)) ?? {};
  // An event may have come meanwhile.
  if (data && after === undefined) list.replaceChildren(...data.comments.map(toItem));
}

async function show(comment) {
  const response = await fetch(`/posts/${comment.postId}`);
  if (!response.ok) return;
  const { title: rawTitle } = await response.json();
  list.prepend(toItem({ ...comment, post: { rawTitle } }));
  while (list.children.length > shownMax) list.lastElementChild.remove();
  state.textContent = `The newest came at ${new Date().toLocaleTimeString()}`;
}

function toItem({ content, name, author, post }) {
  const item = document.createElement('li');
  const [text, source] = [document.createElement('q'), document.createElement('cite')];
  text.textContent = content;
  const who = author?.name ?? name;
  source.textContent = who ? `${who}, on ${post.rawTitle}` : post.rawTitle;
  item.append(text, source);
  return item;
}

/** One key for each press, so that a press is stored once. */
async function addComment() {
  const [content] = remarks;
  remarks.push(remarks.shift());
  // `randomUUID` is for secure origins alone.
  const key = crypto.getRandomValues(new Uint32Array(4)).join('-');
  const response = await fetch(`${demoPost}/comments`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key },
    body: JSON.stringify({ content }),
  });
  const { status } = await response.json();
  if (status === 'PENDING')
    state.textContent = 'Stored. Comments wait for approval on this server.';
  if (!response.ok) state.textContent = refusals[response.status] ?? 'Not stored.';
}

button.addEventListener('click', () => {
  addComment().catch(() => (state.textContent = 'The server does not answer.'));
});
const demo = await fetch(demoPost, { method: 'HEAD' }).catch(() => undefined);
button.hidden = demo?.ok !== true;
watch();
