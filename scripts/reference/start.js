/* global SwaggerUIBundle */
/**
 * Starts the viewer; in a file of its own, since the page's policy allows no script in it. The token
 * of a login is used from then on, as if it had been entered at "Authorize", until the session ends.
 */

import { keepSession } from './session.js';

const viewer = SwaggerUIBundle({
  url: '../openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  // Operations show their own schemas.
  defaultModelsExpandDepth: -1,
  plugins: [{ wrapComponents: { OperationSummary: withoutNeedlessLock } }],
  // The viewer would ask another host whether the document is valid.
  validatorUrl: null,
  responseInterceptor(response) {
    const { pathname } = new URL(response.url, document.baseURI);
    const givesToken = /\/auth\/(?:login|refresh)$/.test(pathname) && response.ok;
    if (givesToken) use(JSON.parse(response.text).access_token);
    return response;
  },
});

/** A lock is for an operation that is never done without a token. */
function withoutNeedlessLock(Summary, { React }) {
  return ({ operationProps, ...others }) => {
    const isOptional = operationProps.get('security')?.some((way) => way.size === 0) === true;
    const shown = isOptional ? operationProps.delete('security') : operationProps;
    return React.createElement(Summary, { operationProps: shown, ...others });
  };
}

let stop = () => undefined;
function use(token) {
  stop();
  const inUse = () => viewer.authSelectors.authorized().getIn(['bearer', 'value']);
  let own;
  stop = keepSession(token, {
    onToken(next) {
      // The visitor may have logged out, or entered another token.
      if (own !== undefined && inUse() !== own) {
        stop();
        return;
      }
      own = next;
      viewer.preauthorizeApiKey('bearer', next);
    },
    onEnd() {
      if (inUse() === own) viewer.authActions.logout(['bearer']);
    },
  });
}

const dark = matchMedia('(prefers-color-scheme: dark)');
function followSystem() {
  document.documentElement.classList.toggle('dark-mode', dark.matches);
}
dark.addEventListener('change', followSystem);
followSystem();
