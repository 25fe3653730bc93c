/** For scripts that complete what a viewer has drawn: `mend` runs once a frame at most. */
export function afterChanges(root, mend) {
  let isAsked = false;
  new MutationObserver(() => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      mend();
    });
  }).observe(root, { childList: true, subtree: true });
}
