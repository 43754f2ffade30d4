// Buttons that copy an id, or a secret that is shown once. Without script there are none.
'use strict';

// addCopy puts a button behind a field whose data-copy is the button's text, and a place where screen readers hear what happened.
function addCopy(field) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'second copy';
  button.textContent = field.dataset.copy;
  button.dataset.own = ''; // a refresh of the page leaves it
  const said = document.createElement('span');
  said.className = 'hint';
  said.dataset.own = '';
  said.setAttribute('role', 'status');
  button.addEventListener('click', async () => {
    said.textContent = ''; // so that the same text is read again
    const text = await copy(field);
    setTimeout(() => { said.textContent = text; }, 100);
  });
  (field.closest('label') ?? field).after(button, said);
}

// copy copies the field, or selects it where the browser does not let a page copy, and returns what to say.
async function copy(field) {
  try {
    await navigator.clipboard.writeText(field.value ?? field.textContent);
    return 'Copied';
  } catch {
    if (field.select) {
      field.focus();
      field.select();
    } else {
      getSelection().selectAllChildren(field);
    }
    return 'Selected: copy it with Ctrl+C or ⌘C';
  }
}

document.querySelectorAll('[data-copy]').forEach(addCopy);
