/**
 * What the viewer leaves out for a screen reader and for the keyboard: names of its fields and of
 * buttons of its dialog, and links inside of buttons that are no controls of their own.
 */

import { afterChanges } from './after-changes.js';

const fields = ':is(select, textarea, input):not([aria-label], [type=submit])';

/** A field is named by the row or the label that it stands in. */
function nameOf(field) {
  const row = field.closest('tr[data-param-name], tr[data-code]')?.dataset ?? {};
  if (row.paramName !== undefined) return row.paramName;
  if (field.matches('.examples-select-element')) return `Example of ${row.code ?? 'the body'}`;
  if (row.code !== undefined) return `Media type of ${row.code}`;
  if (field.matches('.content-type')) return 'Media type';
  if (field.matches('.body-param__text')) return 'Body';
  return field.closest('tr')?.querySelector('td')?.textContent ?? 'Value';
}

function mend(root) {
  for (const field of root.querySelectorAll(fields)) {
    if (!field.labels?.length) field.setAttribute('aria-label', nameOf(field));
  }
  root.querySelector('.close-modal')?.setAttribute('aria-label', 'Close');
  // Their labels are not their texts: who says what is written could not press them (WCAG 2.2 §2.5.3).
  for (const button of root.querySelectorAll('.modal-btn')) button.removeAttribute('aria-label');
  // The button around it opens the operation, and the address of the page follows.
  for (const link of root.querySelectorAll('button a[href]')) link.removeAttribute('href');
  // What scrolls is reached by Tab.
  for (const text of root.querySelectorAll('pre.microlight:not([tabindex])')) text.tabIndex = 0;
}

const reference = document.querySelector('#reference');
afterChanges(reference, () => mend(reference));
