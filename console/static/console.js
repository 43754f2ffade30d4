// What pages do beyond reading and sending forms: times in the viewer's zone, and live updates. Every page works without it.
'use strict';

const pad = (n) => String(n).padStart(2, '0');

// showTimes writes times in the viewer's zone. The title keeps them in UTC.
function showTimes(within) {
  for (const time of within.querySelectorAll('time[datetime]')) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) {
      time.textContent = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${pad(at.getHours())}:${pad(at.getMinutes())}`;
    }
  }
}

showTimes(document);

// live follows what happens to the objects of the page, and changes texts and lengths. It adds nothing but text.
function live(address) {
  const told = document.getElementById('live');
  const waiting = new Map(); // patches by object: a page that is busy skips all but the last
  let news = [], fresh = 0, drawn = 0;
  const tell = (text) => { if (told && told.textContent !== text) told.textContent = text; };

  function draw() {
    drawn = 0;
    for (const patch of waiting.values()) apply(patch);
    waiting.clear();
    for (const item of news) addNews(item);
    news = [];
  }

  const source = new EventSource(address);
  source.onopen = () => tell('Live');
  source.onerror = () => tell(source.readyState === EventSource.CLOSED ? 'Not live. Reload the page for the latest.' : 'Not live: connecting again.');
  source.addEventListener('over', () => { source.close(); location.reload(); });
  source.onmessage = (message) => {
    const update = JSON.parse(message.data);
    for (const patch of update.patches || []) waiting.set(patch.id, patch);
    news = news.concat(update.news || []).slice(-50);
    fresh += update.fresh || 0;
    tell(fresh ? `Live. ${fresh} new ${fresh === 1 ? 'session' : 'sessions'}: reload to see ${fresh === 1 ? 'it' : 'them'}.` : 'Live');
    if (!drawn) drawn = requestAnimationFrame(draw);
  };
  addEventListener('pagehide', () => source.close());
}

const found = (name, value) => document.querySelectorAll(`[${name}="${CSS.escape(value)}"]`);

function apply(patch) {
  for (const [name, text] of Object.entries(patch.text)) {
    for (const node of found('data-live', `${patch.id}.${name}`)) if (node.textContent !== text) node.textContent = text;
  }
  for (const node of found('data-live', `${patch.id}.state`)) {
    const state = node.firstElementChild;
    if (state && state.textContent !== patch.state) {
      state.textContent = patch.state;
      state.className = `status ${patch.state}`;
    }
  }
  for (const [name, bar] of Object.entries(patch.bars)) {
    for (const node of found('data-live-bar', `${patch.id}.${name}`)) setBar(node, bar);
  }
}

// setBar sets the lengths of a drawing of package chart. Only lengths are rounded; the exact figures are text.
function setBar(node, bar) {
  const scale = Math.max(bar.limit, bar.parts[0] + bar.parts[1] + bar.parts[2], 1);
  let from = 0;
  ['used', 'held', 'delegated'].forEach((part, i) => {
    const rect = node.querySelector(`.chart-${part}`);
    if (!rect) return;
    rect.setAttribute('x', `${(100 * from) / scale}%`);
    rect.setAttribute('width', `${(100 * bar.parts[i]) / scale}%`);
    from += bar.parts[i];
  });
  const title = node.querySelector('title');
  if (title) title.textContent = bar.title;
}

// addNews puts an event on top of the page's table of events.
function addNews(item) {
  const rows = document.querySelector('[data-news] tbody');
  if (!rows) return;
  const cells = [];
  const cell = (label, content) => {
    const td = document.createElement('td');
    td.dataset.label = label;
    td.append(content);
    cells.push(td);
  };
  const time = document.createElement('time');
  time.dateTime = item.at;
  time.title = item.full;
  cell('When', time);
  const type = document.createElement('code');
  type.textContent = item.type;
  cell('Event', type);
  cell('By', item.by);
  const about = item.link ? document.createElement('a') : document.createElement('span');
  if (item.link) about.href = item.link;
  about.textContent = item.about;
  cell('About', about);
  const details = document.createElement('code');
  details.textContent = item.details;
  cell('Details', details);
  const row = document.createElement('tr');
  row.append(...cells);
  showTimes(row);
  rows.prepend(row);
  while (rows.rows.length > 60) rows.deleteRow(-1);
}

if (document.body.dataset.live && window.EventSource) live(document.body.dataset.live);
