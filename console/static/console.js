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

// moveTimes moves the bars of sessions' lifetimes on, by the service's clock.
const began = Date.now();
function moveTimes() {
  for (const node of document.querySelectorAll('[data-from]')) {
    const now = Number(node.dataset.now) + Date.now() - began;
    const from = Number(node.dataset.from);
    const to = Number(node.dataset.to);
    const passed = Math.min(Math.max((now - from) / Math.max(to - from, 1), 0), 1);
    node.querySelector('.chart-elapsed').setAttribute('width', `${100 * passed}%`);
    node.querySelector('title').textContent = now >= to ? 'Time: over' : `Time: ${timeText(to - now)} left of ${timeText(to - from)}`;
  }
}

// timeText writes a duration in its two largest units.
function timeText(ms) {
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const parts = [];
  let seconds = Math.floor(ms / 1000);
  for (const [size, name] of units) {
    if (parts.length < 2 && (seconds >= size || parts.length)) parts.push(`${Math.floor(seconds / size)} ${name}`);
    seconds %= size;
  }
  return parts.join(' ') || '0 s';
}

if (document.querySelector('[data-from]')) setInterval(moveTimes, 5000);

// live follows what happens to the objects of the page, and changes texts and lengths. It adds nothing but text.
function live(address) {
  const told = document.getElementById('live');
  const waiting = new Map(); // patches by object: a page that is busy skips all but the last
  let news = [], fresh = 0, drawn = 0;
  const tell = (text) => { if (told && told.textContent !== text) told.textContent = text; };
  let toldAt = 0;
  // tellFresh says how many sessions are new, at most every 10 s: a screen reader reads each change.
  const tellFresh = () => {
    if (Date.now() - toldAt < 10000) return;
    toldAt = Date.now();
    tell(fresh ? `Live. ${fresh} new ${fresh === 1 ? 'session' : 'sessions'}: reload to see ${fresh === 1 ? 'it' : 'them'}.` : 'Live');
  };

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
    tellFresh();
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
  for (const name of ['title', 'desc']) {
    const text = node.querySelector(name);
    if (text) text.textContent = bar[name];
  }
}

// addNews puts an event on top of the page's table of events.
function addNews(item) {
  const rows = document.querySelector('[data-news] tbody');
  if (!rows) return;
  const cells = [];
  const cell = (label, content) => {
    const td = document.createElement('td');
    td.setAttribute('role', 'cell');
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
  row.setAttribute('role', 'row');
  row.append(...cells);
  showTimes(row);
  rows.prepend(row);
  while (rows.rows.length > 60) rows.deleteRow(-1);
}

if (document.body.dataset.live && window.EventSource) live(document.body.dataset.live);

// progress follows a stop that is under way, and shows its end.
function progress(address) {
  const bar = document.querySelector('progress');
  const text = document.getElementById('suspended');
  setTimeout(async () => {
    try {
      const state = await (await fetch(address)).json();
      if (bar) bar.value = state.suspended;
      if (text) text.textContent = state.suspended.toLocaleString('en-US');
      if (!state.running) return location.reload();
    } catch { /* it tries again */ }
    progress(address);
  }, 2000);
}

const underWay = document.querySelector('[data-progress]');
if (underWay) progress(underWay.dataset.progress);
