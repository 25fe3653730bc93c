/**
 * What Altair leaves out for the keyboard and for screen readers: names, roles and places in the tab
 * order.
 */

import { afterChanges } from './after-changes.js';

/** Elements that only a click reaches. */
const pressed = [
  '.window-switcher__input',
  '.window-switcher__close',
  '.side-menu-item',
  '.header__menu-item',
  '.variables-editor--title',
  '.no-link-link',
  '.doc-viewer-navigation__option',
].join();
const scrolled = 'app-window-switcher, .cm-scroller[tabindex="-1"]';
const openedKey = 'inkwell_opened';

function mend() {
  for (const button of document.querySelectorAll('button[track-id]')) {
    const name = button.getAttribute('track-id').replaceAll('_', ' ');
    const label = button.getAttribute('aria-label');
    const isEmpty = button.textContent.trim() === '';
    if (isEmpty && label === null) button.setAttribute('aria-label', name);
    // Its own text may be drawn later.
    if (!isEmpty && label === name) button.removeAttribute('aria-label');
  }
  for (const editor of document.querySelectorAll('[role=textbox]:not([aria-label])')) {
    editor.setAttribute('aria-label', editor.getAttribute('aria-placeholder') ?? 'Editor');
  }
  for (const tab of document.querySelectorAll('[role=tab][aria-controls]')) {
    const panel = document.getElementById(tab.getAttribute('aria-controls'));
    if (panel === null) tab.removeAttribute('aria-controls');
  }
  for (const element of document.querySelectorAll(pressed)) {
    // `tabIndex` of an `a` without address says 0, although Tab does not reach it.
    if (element.matches('[tabindex]') || element.querySelector('button, a[href], [tabindex]')) {
      continue;
    }
    element.tabIndex = 0;
    element.setAttribute('role', 'button');
    element.closest('ul')?.setAttribute('role', 'group');
    const name = element.getAttribute('aria-label') ?? nameOf(element);
    if (name !== undefined) element.setAttribute('aria-label', name);
  }
  for (const element of document.querySelectorAll(scrolled)) element.tabIndex = 0;
  openFirst();
}

/** Where the text is empty or a sign: the name of the icon, or of the tab that is closed. */
function nameOf(element) {
  const { parentElement } = element;
  if (element.matches('.window-switcher__close')) {
    return `Close ${parentElement.querySelector('.window-switcher__input')?.textContent.trim()}`;
  }
  if (element.querySelector('.lucide-eye-off') !== null) return undefined;
  const icon = element.querySelector('[class*=lucide-]')?.getAttribute('class');
  const name = icon?.match(/lucide-(\S+)/)?.[1].replaceAll('-', ' ');
  return name === 'x' ? 'Close' : name;
}

/** Altair opens the last of the examples; the first visit begins with the first. */
function openFirst() {
  const [first] = document.querySelectorAll('.window-switcher__item');
  if (first === undefined || localStorage.getItem(openedKey) !== null) return;
  localStorage.setItem(openedKey, 'yes');
  first.click();
}

document.addEventListener('keydown', (event) => {
  if ((event.key === 'Enter' || event.key === ' ') && event.target.matches(pressed)) {
    event.preventDefault();
    event.target.click();
  }
});
afterChanges(document.body, mend);
