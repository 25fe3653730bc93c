/**
 * The session of a page (R42). Its token is in the memory of this page only, and is refreshed while
 * the page is shown:
 *
 *     token ── 1/2 of its life ──▶ shown? ── yes ──▶ POST /auth/refresh ── 200 ──▶ the next token
 *                                    │ no                  ├── 401 ──▶ the session has ended
 *                                    └── when it is shown  └── other ── 5 s ──▶ shown? …
 *
 * For example, a token of 60 seconds is refreshed after 30; without a connection again after 35, 40
 * and so on. Its life counts from its arrival, because the clock of the page may be wrong.
 */

const address = new URL('../auth/refresh', document.baseURI);
const retryMilliseconds = 5_000;
/** A longer timer would fire at once. */
const timerMillisecondsMax = 2 ** 31 - 1;

/**
 * Calls `onToken` with each new token, and `onEnd` when the server refuses one. Returns a function
 * that stops it.
 */
export function keepSession(token, { onToken, onEnd }) {
  let timer;
  let isOver = false;

  function refreshWhenShown() {
    if (!document.hidden) void refresh();
    else document.addEventListener('visibilitychange', refreshWhenShown, { once: true });
  }

  async function refresh() {
    if (isOver) return;
    const headers = { Authorization: `Bearer ${token}` };
    const response = await fetch(address, { method: 'POST', headers }).catch(() => undefined);
    const body = response?.ok && (await response.json().catch(() => undefined));
    if (isOver) return;
    if (response?.status === 401) onEnd();
    else if (body) begin(body.access_token);
    else timer = setTimeout(refreshWhenShown, retryMilliseconds);
  }

  function begin(next) {
    token = next;
    onToken(token);
    const { iat, exp } = JSON.parse(atob(toBase64(token.split('.')[1])));
    timer = setTimeout(refreshWhenShown, Math.min((exp - iat) * 500, timerMillisecondsMax));
  }

  begin(token);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

function toBase64(base64url) {
  return base64url.replaceAll('-', '+').replaceAll('_', '/');
}
