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
