// The page works without this. It adds what needs a script: new verdicts as they
// settle, local times, and a button that copies commands.
(() => {
  'use strict';
  const body = document.body;

  // Times are UTC; the local time is a hover, or one button, away.
  const wantsLocal = () => { try { return localStorage.getItem('times') === 'local'; } catch { return false; } };
  const remember = (local) => { try { localStorage.setItem('times', local ? 'local' : 'utc'); } catch { /* it is forgotten then */ } };
  const pad = (n) => String(n).padStart(2, '0');
  const localText = (t) => `${t.getFullYear()}-${pad(t.getMonth() + 1)}-${pad(t.getDate())} ${pad(t.getHours())}:${pad(t.getMinutes())}:${pad(t.getSeconds())}`;
  const zoneName = Intl.DateTimeFormat().resolvedOptions().timeZone || 'local time';
  function times(root) {
    const local = wantsLocal();
    for (const el of root.querySelectorAll('time[datetime]')) {
      const t = new Date(el.dateTime);
      if (Number.isNaN(t.getTime())) continue;
      if (!el.dataset.utc) el.dataset.utc = el.textContent;
      el.textContent = local ? localText(t) : el.dataset.utc;
      el.title = local ? `${el.dataset.utc} UTC` : `${localText(t)} ${zoneName}`;
    }
    for (const el of root.querySelectorAll('[data-local]')) {
      const t = new Date(el.dataset.local);
      if (!Number.isNaN(t.getTime()) && t.getTimezoneOffset() !== 0) el.textContent = localText(t);
    }
  }
  function zone() {
    const place = document.querySelector('.zone');
    if (!place || (new Date().getTimezoneOffset() === 0 && !wantsLocal())) return;
    const button = document.createElement('button');
    button.type = 'button';
    const label = () => { button.textContent = wantsLocal() ? `Times are shown in ${zoneName}. Show UTC` : `Show times in ${zoneName}`; };
    button.addEventListener('click', () => { remember(!wantsLocal()); times(document); label(); });
    label();
    place.append(button);
    place.hidden = false;
  }

  function copies(root) {
    for (const button of root.querySelectorAll('.copy')) {
      button.hidden = false;
      button.addEventListener('click', async () => {
        const text = button.parentElement.querySelector('code').textContent;
        try {
          await navigator.clipboard.writeText(text);
          say('Copied');
          button.querySelector('span').textContent = 'Copied';
        } catch {
          getSelection().selectAllChildren(button.parentElement.querySelector('code'));
        }
      });
    }
  }

  function say(text) {
    const place = document.getElementById('announcement');
    if (place) place.textContent = text;
  }

  // What the server shows of this address now takes the place of what is shown:
  // there is one way to draw a page, and it is the server's.
  let loading = false, again = false;
  async function renew(announce) {
    if (loading) { again = true; return; }
    loading = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, credentials: 'same-origin', cache: 'no-store' });
      if (!answer.ok) return;
      if (answer.redirected && new URL(answer.url).pathname === '/sign-in') { location.reload(); return; }
      const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
      swap(fresh);
      if (announce) say('The page was brought up to date.');
    } catch { /* the next event tries again */ } finally {
      loading = false;
      if (again) { again = false; setTimeout(() => renew(announce), 1000); }
    }
  }
  function swap(fresh) {
    const open = new Map([...document.querySelectorAll('details[id]')].map((d) => [d.id, d.open]));
    const known = new Set([...document.querySelectorAll('[data-key]')].map((el) => el.dataset.key));
    const focused = document.activeElement;
    for (const id of ['banner', 'content']) {
      const now = document.getElementById(id), next = fresh.getElementById(id);
      if (!now || !next || now.innerHTML === next.innerHTML) continue;
      if (id === 'content' && focused && now.contains(focused) && focused.matches('input, select, textarea')) {
        replaceParts(now, next);
      } else {
        now.replaceChildren(...document.adoptNode(next).childNodes);
      }
    }
    for (const [id, was] of open) { const d = document.getElementById(id); if (d) d.open = was; }
    for (const el of document.querySelectorAll('[data-key]')) if (!known.has(el.dataset.key)) el.classList.add('fresh');
    if (focused && focused.id && !document.contains(focused)) document.getElementById(focused.id)?.focus({ preventScroll: true });
    body.dataset.refresh = fresh.body.dataset.refresh || '';
    dress(document.getElementById('content'));
    later();
  }
  // Somebody is typing: only the parts with an id of their own are replaced.
  function replaceParts(now, next) {
    for (const part of next.querySelectorAll(':scope > [id]')) {
      const old = document.getElementById(part.id);
      if (old && now.contains(old) && !old.contains(document.activeElement)) old.replaceWith(document.adoptNode(part));
    }
  }
  let timer = 0;
  function later() {
    clearTimeout(timer);
    const seconds = Number(body.dataset.refresh);
    if (seconds > 0) timer = setTimeout(() => renew(false), seconds * 1000);
  }

  function live() {
    const subject = body.dataset.live;
    const sign = document.querySelector('.live');
    if (!subject || !sign || !window.EventSource) return;
    const text = sign.querySelector('.live-text');
    const show = (state, words) => { sign.hidden = false; sign.dataset.state = state; text.textContent = words; };
    let source = null;
    const start = () => {
      if (source) return;
      source = new EventSource('/live');
      source.addEventListener('open', () => show('on', 'live'));
      source.addEventListener('error', () => show('off', 'not live'));
      source.addEventListener('verdicts', (e) => {
        const news = JSON.parse(e.data);
        if (subject === 'all' || news.more || (news.claims || []).includes(subject)) renew(true);
      });
    };
    const stop = () => { if (source) { source.close(); source = null; } };
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) { stop(); return; }
      start();
      renew(false);
    });
    addEventListener('pagehide', stop);
    addEventListener('pageshow', (e) => { if (e.persisted) { start(); renew(false); } });
    start();
  }

  function dress(root) { times(root); copies(root); }

  // "/" leads to the search box, as people are used to.
  document.addEventListener('keydown', (e) => {
    if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || e.target.matches('input, select, textarea')) return;
    const box = document.querySelector('.search input');
    if (box) { e.preventDefault(); box.focus(); }
  });
  zone();
  dress(document);
  later();
  live();
})();
