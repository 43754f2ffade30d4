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

// On a narrow screen the links to pages scroll. The page that is open is in sight, and the whole link that has the focus: browsers are
// content with a part of it.
{
  const list = document.querySelector('.top ul'), here = list?.querySelector('[aria-current]');
  if (here) list.scrollLeft = here.offsetLeft - list.clientWidth / 3;
  list?.addEventListener('focusin', ({ target }) => target.scrollIntoView({ block: 'nearest', inline: 'nearest' }));
}

// A form that was refused is shown at the address that it was sent to, which is no page: reloading would send it again.
if (document.body.dataset.here) history.replaceState(null, '', document.body.dataset.here);

// moveTime moves the bar of a session's lifetime on, by the service's clock.
const began = Date.now();
function moveTime(node) {
  const now = Number(node.dataset.now) + Date.now() - began;
  const from = Number(node.dataset.from);
  const to = Number(node.dataset.to);
  const over = 'over' in node.dataset || now >= to;
  const passed = over ? 1 : Math.max((now - from) / Math.max(to - from, 1), 0);
  node.querySelector('.chart-elapsed').setAttribute('width', `${100 * passed}%`);
  const level = over ? node.dataset.level ?? 'full' : now >= Number(node.dataset.near) ? 'near' : '';
  setLevel(node, level, over ? 'over' : `${Math.floor(100 * passed)} %`);
  node.querySelector('title').textContent = over ? 'Time: over' : `Time: ${timeText(to - now)} left of ${timeText(to - from)}`;
}

// setLevel colours a bar by how near its limit it is, and writes its share. The service says when that changes.
function setLevel(node, level, share) {
  const svg = node.querySelector('svg');
  for (const one of ['near', 'full']) svg.classList.toggle(`chart-${one}`, level === one);
  const text = node.querySelector('.share');
  if (text && text.textContent !== share) text.textContent = share;
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

if (document.querySelector('[data-time]')) setInterval(() => document.querySelectorAll('[data-time]').forEach(moveTime), 5000);


// A browser opens at most six connections to a host over HTTP/1.1, for all its tabs together. Live pages take four of them at most,
// so that pages and changes always get through.
const liveAtOnce = 4;

// takePlace calls begin once one of these is free. It returns a function that gives it back, or up.
function takePlace(begin) {
  if (!navigator.locks) {
    begin();
    return () => {};
  }
  const asking = new AbortController();
  let taken = false, giveBack = () => {};
  for (let place = 0; place < liveAtOnce; place++) {
    const take = () => {
      if (taken || asking.signal.aborted) return undefined;
      taken = true;
      asking.abort(); // of the other places
      begin();
      return new Promise((resolve) => { giveBack = resolve; });
    };
    navigator.locks.request(`remit live ${place}`, { signal: asking.signal }, take).catch(() => {}); // given up
  }
  return () => {
    asking.abort();
    giveBack();
  };
}

const shortestPause = 3, longestPause = 60; // seconds between two attempts to connect

// live follows what happens to the objects of the page while somebody can see it. It changes texts and lengths, adds events, and gets the
// page anew when the service says that it shows something old. When it connects again it says what it has seen, and the service tells it
// of what it missed.
function live(address) {
  const told = document.getElementById('live');
  let url = new URL(address, location.href);
  const waiting = new Map(); // patches by object: a page that is busy skips all but the last
  let news = [], missed = false, drawn = 0;
  let source, leave, retry, pause = shortestPause;
  let since, stale = false, left = false, wasLive = false; // since: messages that came while the page is got anew

  const tell = (text) => { if (told && told.textContent !== text) told.textContent = text; };
  let toldAt = 0, later = 0;
  // tellState says what is new, at most every 10 s: a screen reader reads each change.
  const tellState = () => {
    const wait = toldAt + 10000 - Date.now();
    if (wait > 0) {
      later ||= setTimeout(() => { later = 0; tellState(); }, wait);
      return;
    }
    if (source?.readyState !== EventSource.OPEN) return;
    toldAt = Date.now();
    tell(missed ? 'Live. More happened meanwhile: reload to see all.' : 'Live');
  };

  function draw() {
    drawn = 0;
    for (const patch of waiting.values()) apply(patch);
    waiting.clear();
    for (const item of news) addNews(item);
    news = [];
  }

  function take(message) {
    const update = JSON.parse(message.data);
    since?.push(update);
    if (update.stale) refresh();
    for (const patch of update.patches || []) waiting.set(patch.id, patch);
    news = news.concat(update.news || []).slice(-50);
    if (update.missed) {
      missed = true;
      refresh();
    }
    if (update.seen) url.searchParams.set('after', update.seen);
    pause = shortestPause;
    tellState();
    if (!drawn) drawn = requestAnimationFrame(draw);
  }

  // isAiming reports whether the viewer may be about to press a button, which must not move away from under the pointer.
  let movedAt = 0;
  document.addEventListener('pointermove', () => { movedAt = Date.now(); });
  const isAiming = () => Date.now() - movedAt < 700 && document.querySelector('#main form:hover') !== null;

  // refresh gets the page anew and takes over what differs; what came meanwhile may be newer still.
  async function refresh() {
    stale = true;
    if (since || document.hidden) return;
    stale = false;
    since = [];
    const page = await newerPage(document.body.dataset.page);
    while (isAiming()) await new Promise((later) => setTimeout(later, 200));
    const meanwhile = since;
    since = undefined;
    if (page) show(page);
    missed = !page || meanwhile.some((update) => update.missed);
    for (const update of meanwhile) {
      for (const patch of update.patches || []) apply(patch);
      for (const item of update.news || []) addNews(item);
    }
    tellState();
    if (stale) refresh();
  }

  function show(page) {
    showTimes(page);
    for (const node of page.querySelectorAll('[data-time]')) {
      node.dataset.now = Number(node.dataset.now) - (Date.now() - began); // moveTime adds that
      moveTime(node);
    }
    left = false;
    for (const part of ['header.top nav', '#main']) {
      const [old, newer] = [document.querySelector(part), page.querySelector(part)];
      if (old && newer) left = takeOver(old, newer) || left;
    }
    document.title = page.title;
    const next = new URL(page.body.dataset.live, location.href);
    if (watches(next) !== watches(url)) { // other sessions than before
      url = next;
      if (source && source.readyState !== EventSource.CLOSED) {
        source.close();
        connect();
      }
    } else {
      for (const name of shownAs) url.searchParams.set(name, next.searchParams.get(name) || '');
    }
  }

  // A form that was in use is brought up to date once it is left.
  document.addEventListener('focusout', () => setTimeout(() => { if (left && leave && !document.activeElement?.closest('form')) refresh(); }));

  function connect() {
    if (wasLive) url.searchParams.delete('figures'); // the page is got anew in any case
    source = new EventSource(url);
    source.onopen = () => {
      toldAt = 0;
      if (wasLive) refresh(); // what was added up meanwhile is no event
      wasLive = false;
      tellState();
    };
    source.onmessage = take;
    source.onerror = () => { // a browser would give up after any answer but a stream
      source.close();
      wasLive = true;
      tell('Not live: connecting again.');
      retry = setTimeout(connect, 1000 * pause);
      pause = Math.min(2 * pause, longestPause);
    };
    source.addEventListener('over', () => { // the sign-in: the page leads to it
      stop();
      location.reload();
    });
  }

  function start() {
    if (leave || document.hidden) return;
    let connected = false;
    const mine = takePlace(() => {
      connected = true;
      connect();
    });
    leave = mine;
    setTimeout(() => {
      if (leave === mine && !connected) tell(`Not live: ${liveAtOnce} other tabs are. Reload the page for the latest.`);
    }, 1000);
  }

  function stop() {
    leave?.();
    leave = undefined;
    clearTimeout(retry);
    wasLive ||= Boolean(source);
    source?.close();
    pause = shortestPause;
  }

  document.addEventListener('visibilitychange', () => (document.hidden ? stop() : start()));
  addEventListener('pagehide', stop);
  addEventListener('pageshow', start); // also of a page that was kept while another one was shown
  start();
}

// shownAs names what an address of updates says of the sums and figures that the page shows.
const shownAs = ['spent', 'figures'];

// watches returns what an address of updates watches, whatever it says that the page shows of that.
function watches(address) {
  const of = new URLSearchParams(address.search);
  for (const name of ['after', ...shownAs]) of.delete(name);
  return String(of);
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
  for (const [name, at] of Object.entries(patch.time.at)) {
    for (const node of found('data-at', `${patch.id}.${name}`)) setTime(node, at);
  }
  for (const node of found('data-time', patch.id)) setEnd(node, patch.time);
}

// timeOf returns an element for a time, as pages have it.
function timeOf({ at, full }) {
  const time = document.createElement('time');
  time.dateTime = at;
  time.title = full;
  return time;
}

function setTime(node, at) {
  if (node.querySelector('time')?.dateTime === at.at) return;
  node.replaceChildren(timeOf(at));
  showTimes(node);
  node.parentElement.hidden = false; // it may be the first such time
}

// setEnd moves the end of a session's lifetime. The bar of one that is over is full, and does not move on.
function setEnd(node, time) {
  node.dataset.to = time.to;
  node.dataset.near = time.near;
  node.querySelector('desc').textContent = time.desc;
  if (time.over) [node.dataset.over, node.dataset.level] = ['', time.level];
  moveTime(node);
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
  setLevel(node, bar.level, bar.share);
}

// addNews puts an event on top of the page's table of events, unless it is there.
function addNews(item) {
  const rows = document.querySelector('[data-news] tbody');
  if (!rows || found('data-event', item.id).length > 0) return;
  const cells = [];
  const cell = (label, content) => {
    const td = document.createElement('td');
    td.setAttribute('role', 'cell');
    td.dataset.label = label;
    td.append(content);
    cells.push(td);
  };
  cell('When', timeOf(item));
  const type = document.createElement('code');
  type.textContent = item.type;
  cell('Event', type);
  cell('By', item.by);
  const about = document.createElement('span');
  if (item.link) about.append(Object.assign(document.createElement('a'), { href: item.link, textContent: item.about }));
  cell('About', about);
  cell('Details', item.details ? folded(item.details) : '');
  const row = document.createElement('tr');
  row.setAttribute('role', 'row');
  row.dataset.event = item.id;
  row.append(...cells);
  showTimes(row);
  rows.prepend(row);
  const table = rows.closest('table');
  if (table.hidden) { // it is the first one
    table.hidden = false;
    table.nextElementSibling?.remove();
  }
  while (rows.rows.length > 30) rows.deleteRow(-1); // as many as the page has
}

// folded returns the details of an event as the page has them.
function folded(text) {
  const [details, summary, pre, bdi] = ['details', 'summary', 'pre', 'bdi'].map((name) => document.createElement(name));
  [summary.textContent, bdi.textContent] = ['Show', text];
  pre.append(bdi);
  details.append(summary, pre);
  return details;
}

if (document.body.dataset.live && window.EventSource) live(document.body.dataset.live);

// progress follows a suspension or resumption of all agents, and shows its end.
function progress(node) {
  const far = document.getElementById('far');
  const bar = document.querySelector('progress');
  const counted = document.getElementById('suspended');
  const number = (n) => n.toLocaleString('en-US');
  let toldAt = 0;

  function show(state) {
    if (bar) [bar.max, bar.value] = [state.live, state.suspended];
    if (counted) counted.textContent = number(state.suspended);
    if (Date.now() - toldAt < 10000) return; // a screen reader reads each change
    toldAt = Date.now();
    far.textContent = `${number(state.suspended)} of ${number(state.live)} live agents are suspended.`;
  }

  // end shows the page anew, unless that would take from somebody what they have typed.
  function end(state) {
    const typed = [...document.querySelectorAll('input:not([type=hidden])')].some((input) => input.value !== input.defaultValue);
    if (!typed) return location.reload();
    const reload = document.createElement('a');
    reload.href = location.pathname;
    reload.textContent = 'Reload the page';
    node.replaceChildren(`${state.result || 'Whether it has ended is not known here: the counts are the truth.'} `, reload, '.');
    node.classList.toggle('failed', state.failed);
    return undefined;
  }

  async function ask() {
    if (document.hidden) return setTimeout(step, 2000);
    const answer = await fetch(node.dataset.progress);
    if (answer.status === 401 || answer.redirected) return location.reload(); // which leads to the sign-in
    const state = await answer.json();
    show(state);
    return state.running ? setTimeout(step, 2000) : end(state);
  }

  const step = () => ask().catch(() => setTimeout(step, 2000));
  setTimeout(step, 2000);
}

const underWay = document.querySelector('[data-progress]');
if (underWay) progress(underWay);

// reloadWhenReady reloads a page of which a part is still being added up, once that is there. It takes from nobody what they are typing.
async function reloadWhenReady() {
  const isBusy = document.hidden || isInUse(document.getElementById('main'));
  if (!isBusy && !(await (await fetch(location.href)).text()).includes('data-again>')) return location.reload();
  return later();
}

const later = () => setTimeout(() => reloadWhenReady().catch(later), 1000);
if (document.querySelector('[data-again]')) later();
