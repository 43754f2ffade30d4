// Takes over what differs in a newer version of a page, element by element. Focus, open details, and forms that somebody uses stay.
'use strict';

// isTyped reports whether a field has something else than the service gave it.
function isTyped(field) {
  if (field.localName === 'select') return field.selectedIndex !== Math.max([...field.options].findIndex((option) => option.defaultSelected), 0);
  if (field.type === 'checkbox' || field.type === 'radio') return field.checked !== field.defaultChecked;
  return field.type !== 'hidden' && field.value !== field.defaultValue;
}

// isInUse reports whether the viewer is in an element, or has typed in it what is not sent yet, or was told to correct.
function isInUse(element) {
  if (element.matches('[data-kept]') || element.querySelector('[data-kept]')) return true;
  const at = document.activeElement;
  if (at && at !== document.body && at.id !== 'main' && element.contains(at)) return true;
  return [...element.querySelectorAll('input, select, textarea')].some((field) => isTyped(field) || field.getAttribute('aria-invalid') === 'true');
}

// isOwn reports whether an element is none of the service's newer version: the message of a change, and what the script says.
const isOwn = (element) => element.id === 'live' || element.matches('div.flash, [data-own]');

// keyOf names what an element shows, so that it is not mistaken for another one after something came or went before it.
function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return node.nodeName;
  const { id, dataset, localName } = node;
  let name = id || dataset.object || dataset.event || dataset.key;
  if (!name && localName === 'form') name = node.getAttribute('action');
  if (!name && ['section', 'details'].includes(localName)) name = node.querySelector(':scope > h2, :scope > summary')?.textContent;
  if (!name && node.matches('div.empty')) name = node.querySelector('form')?.getAttribute('action');
  if (!name && ['tr', 'li'].includes(localName)) name = node.querySelector('a')?.getAttribute('href');
  return `${localName} ${name || node.getAttribute('class') || ''}`;
}

// takeOver makes an element like a newer one. It returns whether it left out something that the viewer uses.
function takeOver(old, newer) {
  if (isOwn(old) || old.isEqualNode(newer)) return false;
  if (old.name === 'once') return false; // a form that is sent twice has one key
  if (old.localName === 'form' && isInUse(old)) return true;
  takeAttributes(old, newer);
  return takeChildren(old, newer);
}

function takeAttributes(old, newer) {
  for (const { name } of [...old.attributes]) {
    if (!newer.hasAttribute(name) && !(name === 'open' && old.localName === 'details')) old.removeAttribute(name);
  }
  for (const { name, value } of newer.attributes) {
    if (old.getAttribute(name) !== value && !(name === 'open' && old.localName === 'details')) old.setAttribute(name, value);
  }
  if (old.localName === 'input' && old.type !== 'hidden') old.value = old.defaultValue;
}

function takeChildren(old, newer) {
  const rest = new Map(); // the children that are not in their place yet, by key
  for (const child of old.childNodes) {
    const key = keyOf(child);
    if (!rest.has(key)) rest.set(key, []);
    rest.get(key).push(child);
  }
  const pairs = [...newer.childNodes].map((wanted) => [wanted, rest.get(keyOf(wanted))?.shift()]);
  const gone = new Set([...rest.values()].flat());
  const stays = (node) => gone.has(node) && node.nodeType === Node.ELEMENT_NODE && (isOwn(node) || isInUse(node));
  let next = old.firstChild, left = false;
  for (const [wanted, own] of pairs) {
    while (next && stays(next)) next = next.nextSibling; // what stays keeps its place
    if (!own) {
      old.insertBefore(document.adoptNode(wanted), next);
    } else {
      moveBefore(own, next);
      next = own.nextSibling;
      if (own.nodeType === Node.ELEMENT_NODE) left = takeOver(own, wanted) || left;
      else if (own.data !== wanted.data) own.data = wanted.data;
    }
  }
  for (const child of gone) {
    if (!stays(child)) child.remove();
    else if (!isOwn(child)) left = true;
  }
  return left;
}

// moveBefore moves a node to before one of its siblings. An element that moves loses the focus, so one that has it stays, and the
// others move.
function moveBefore(node, sibling) {
  const parent = node.parentNode;
  if (node === sibling) return;
  if (!node.contains(document.activeElement)) {
    parent.insertBefore(node, sibling);
    return;
  }
  const after = node.nextSibling;
  for (let one = sibling; one && one !== node;) {
    const following = one.nextSibling;
    parent.insertBefore(one, after);
    one = following;
  }
}

// newerPage gets the page anew. It returns undefined when that cannot be had now, and reloads the page when the sign-in has ended.
const newerPage = (address) => new Promise((resolve) => {
  const request = new XMLHttpRequest(); // parses what it gets, which the policy does not let a script do
  request.open('GET', address);
  request.responseType = 'document';
  request.setRequestHeader('Remit-Refresh', '1');
  request.timeout = 30000;
  request.onloadend = () => {
    const page = request.status === 200 ? request.response : undefined;
    if (page && !page.body.dataset.live) location.reload(); // which leads to the sign-in
    resolve(page?.body.dataset.live ? page : undefined);
  };
  request.send();
});
