'use strict';
(() => {
const doc = document, root = doc.documentElement;
root.classList.add('js');
const all = (selector, from) => [...(from || doc).querySelectorAll(selector)];
const make = (tag, props, ...children) => {
  const node = Object.assign(doc.createElement(tag), props);
  node.append(...children);
  return node;
};

// Sorting: a body of rows per op where rows open, single rows elsewhere.
for (const table of all('table[data-sort]')) {
  const opens = 'open' in table.dataset;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = make('button', {type: 'button'});
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const down = head.ariaSort ? head.ariaSort !== 'descending' : head.classList.contains('n');
      for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const items = opens ? [...table.tBodies] : [...table.tBodies[0].rows];
      const value = item => {
        const cell = (opens ? item.rows[0] : item).cells[column];
        return cell.dataset.v !== undefined ? Number(cell.dataset.v) : head.classList.contains('n') ? null : (cell.querySelector('code') || cell).textContent;
      };
      const keyed = items.map(item => [value(item), item]);
      keyed.sort(([a], [b]) => a === null ? (b === null ? 0 : 1) : b === null ? -1
        : (typeof a === 'string' ? a.localeCompare(b, 'en') : a - b) * (down ? -1 : 1));
      (opens ? table : table.tBodies[0]).append(...keyed.map(pair => pair[1]));
    });
  });
}

// Rows that open.
const toggle = (body, on) => {
  const open = body.classList.toggle('open', on);
  body.querySelector('th button').setAttribute('aria-expanded', open);
};
for (const table of all('table[data-open]')) {
  for (const body of table.tBodies) {
    const name = body.rows[0].cells[0], button = make('button', {type: 'button'});
    button.append(...name.childNodes);
    name.append(button);
    button.setAttribute('aria-expanded', 'false');
    for (const details of all('details', body)) details.open = true;
    body.rows[0].addEventListener('click', event => {
      if (!getSelection().toString() || event.target.closest('button')) toggle(body);
    });
  }
}

// Long tables of ops show a dozen first.
for (const table of all('table[data-open]')) {
  if (table.tBodies.length < 16) continue;
  const scroll = table.parentNode, count = table.tBodies.length;
  const button = make('button', {type: 'button', className: 'all'});
  const fold = on => { table.classList.toggle('short', on); button.textContent = on ? 'Show all ' + count + ' ops' : 'Show 12 ops'; };
  button.addEventListener('click', () => fold(!table.classList.contains('short')));
  fold(true);
  scroll.after(button);
}

// Filters.
for (const table of all('table[data-filter]')) {
  const rows = [...table.tBodies[0].rows], texts = rows.map(row => [row.textContent, ...all('[title]', row).map(cell => cell.title)].join(' ').toLowerCase());
  const count = make('output', {textContent: rows.length + ' rows'});
  const input = make('input', {type: 'search', placeholder: 'Filter rows'});
  input.setAttribute('aria-label', 'Filter ' + table.caption.textContent);
  input.addEventListener('input', () => {
    const wanted = input.value.toLowerCase();
    let shown = 0;
    rows.forEach((row, k) => { row.hidden = !texts[k].includes(wanted); if (!row.hidden) shown++; });
    count.textContent = wanted ? shown + ' of ' + rows.length + ' rows' : rows.length + ' rows';
  });
  table.parentNode.before(make('div', {className: 'filter'}, input, count));
}

// Copying.
for (const code of all('code[data-copy]')) {
  const button = make('button', {type: 'button', className: 'cp', textContent: 'copy'});
  button.addEventListener('click', event => {
    event.stopPropagation();
    const done = () => { button.textContent = 'copied'; setTimeout(() => { button.textContent = 'copy'; }, 1500); };
    const select = () => getSelection().selectAllChildren(code);
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select); else select();
  });
  code.after(button);
}

// A link into a folded part opens it.
const reveal = () => {
  const target = location.hash && doc.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let node = target; node; node = node.parentElement) if (node.tagName === 'DETAILS') node.open = true;
};
addEventListener('hashchange', reveal);
reveal();

const data = JSON.parse(doc.getElementById('nsysmodel-data').textContent);
const NS = 'http://www.w3.org/2000/svg';
const shape = (tag, attributes, text) => {
  const node = doc.createElementNS(NS, tag);
  for (const name in attributes) node.setAttribute(name, attributes[name]);
  if (text) node.textContent = text;
  return node;
};
const pretty = ns => ns < 0 ? '−' + pretty(-ns) : ns >= 1e6 ? (ns / 1e6).toPrecision(4) + ' ms' : ns >= 1e3 ? (ns / 1e3).toPrecision(4) + ' µs' : ns + ' ns';

// What if: sums and differences of floors that the model gave beforehand.
for (const form of all('.wi')) {
  const w = data.what_if, control = name => form.querySelector('[name=' + name + ']'), pick = name => control(name) ? control(name).value : '';
  const body = make('tbody'), out = make('output', {}, make('table', {}, body));
  const rate = (tokens, ns) => Number((tokens / ns * 1e9).toPrecision(3)).toLocaleString('en');
  const line = (tag, cells) => make('tr', {}, ...cells.map((text, k) => make(k && tag === 'td' ? 'td' : 'th', {textContent: text, scope: tag === 'th' ? 'col' : 'row'})));
  const show = () => {
    const [b, l, f] = ['batch', 'reach', 'bandwidth'].map(name => Number(pick(name)));
    const floor = w.floors[b][l][f], tokens = w.tokens[b][l], was = w.tokens[w.here[0]][w.here[1]];
    const op = pick('op') === '' ? null : w.ops[Number(pick('op'))];
    const gain = op ? Math.max(0, Math.min(op[0] - op[1] * 100 / Number(pick('share')), op[2])) : 0;
    const rows = [line('th', ['', 'judged', 'what if'])];
    if (floor === null) rows.push(line('td', ['floor of a step', pretty(w.floor), 'no such step in this model']));
    else {
      const step = w.measured - gain + floor - w.floor;
      rows.push(line('td', ['floor of a step', pretty(w.floor), pretty(floor)]), line('td', [w.unit + ' at most', rate(was, w.floor), rate(tokens, floor)]));
      if (op) rows.push(line('td', ['gain of ' + control('op').selectedOptions[0].text, '', pretty(Math.round(gain))]));
      rows.push(line('td', ['a step, if all else stays', pretty(w.measured), pretty(step)]), line('td', [w.unit + ' then', rate(was, w.measured), rate(tokens, step)]));
    }
    body.replaceChildren(...rows);
  };
  form.append(out);
  form.hidden = false;
  form.addEventListener('change', show);
  show();
}

// Timelines.
for (const box of all('.tl')) {
  const t = data.devices[Number(box.dataset.timeline)].timeline;
  if (!t) continue;
  const svg = box.querySelector('svg.timeline'), bars = svg.querySelector('svg.bars'), caps = svg.querySelector('.caps');
  const height = bars.viewBox.baseVal.height, whole = t.window_ns;
  let from = 0, span = whole, chosen = -1;
  const cursor = shape('rect', {class: 'cursor', visibility: 'hidden'});
  bars.append(cursor);
  const out = make('output', {textContent: 'Hover, drag, scroll with Ctrl, or use the arrow keys, + − 0 and n p.'});
  const tools = make('div', {className: 'tools'});
  box.tabIndex = 0;
  box.setAttribute('role', 'group');
  box.setAttribute('aria-label', 'Timeline: arrow keys move, plus and minus zoom, 0 shows all, n and p step through the bars');
  const ticks = () => {
    const rough = span / 8, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map(m => m * power).find(m => m >= rough);
    const unit = whole >= 3e6 ? [1e6, 'ms'] : whole >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
    for (const node of all('.tick', caps)) node.remove();
    for (let at = Math.ceil(from / step) * step; at <= from + span; at += step) {
      const place = (at - from) / span * 100, x = place.toFixed(3) + '%';
      caps.prepend(shape('line', {class: 'tick g', x1: x, x2: x, y1: 14, y2: '100%'}),
        shape('text', {class: 'tick t', x, y: 10, 'font-size': 11, 'text-anchor': place > 96 ? 'end' : place < 2 ? 'start' : 'middle'},
          Number((at / unit[0]).toPrecision(7)) + ' ' + unit[1]));
    }
  };
  const names = () => {
    for (const node of all('.name', caps)) node.remove();
    const pixels = svg.getBoundingClientRect().width || 1;
    for (let k = 0, drawn = 0; k < t.start.length && drawn < 80; k++) {
      const left = Math.max(t.start[k], from), right = Math.min(t.start[k] + t.duration[k], from + span);
      const wide = (right - left) / span * pixels, x = (left - from) / span * pixels;
      if (wide < 30) continue;
      const text = t.strings[t.op[k] < 0 ? t.label[k] : t.op[k]];
      if (text.length * 6.3 > wide || x < t.lanes[t.lane[k]].length * 6.5 + 8) continue;
      caps.append(shape('text', {class: 'name', x: ((left + right) / 2 - from) / span * 100 + '%', y: t.head + t.lane[k] * t.lane_height + t.lane_height - 23, 'font-size': 10.5, 'text-anchor': 'middle'}, text));
      drawn++;
    }
  };
  const view = (start, wide) => {
    span = Math.min(whole, Math.max(wide, Math.min(whole, 500)));
    from = Math.min(Math.max(start, 0), whole - span);
    const k = t.span / whole;
    bars.setAttribute('viewBox', [from * k, 0, span * k, height].join(' '));
    box.dataset.from = Math.round(from);
    box.dataset.span = Math.round(span);
    ticks();
    names();
  };
  const zoom = (factor, at) => { const x = at === undefined ? from + span / 2 : at; view(x - (x - from) * factor, span * factor); };
  const show = k => {
    chosen = k;
    if (k < 0) { cursor.setAttribute('visibility', 'hidden'); return; }
    const merged = t.merged[k], op = t.op[k] < 0 ? '' : t.strings[t.op[k]] + ' — ';
    const what = t.strings[t.kind[k]] === 'gap' ? 'idle: ' : '';
    out.textContent = pretty(t.duration[k]) + ' at ' + pretty(t.start[k]) + ', ' + t.lanes[t.lane[k]] + ': ' + what + op + t.strings[t.label[k]] + (merged ? ' (' + merged + ' merged)' : '');
    const scale = t.span / whole;
    for (const [name, value] of [['x', t.start[k] * scale], ['y', t.head + t.lane[k] * t.lane_height + t.lane_height - 21], ['width', Math.max(t.duration[k] * scale, 1)], ['height', 19], ['visibility', 'visible']]) cursor.setAttribute(name, value);
  };
  const order = t.start.map((_, k) => k).sort((a, b) => t.start[a] - t.start[b]);
  const step = by => {
    const at = order.indexOf(chosen), first = order.findIndex(k => t.start[k] + t.duration[k] > from);
    const next = at < 0 ? Math.max(first, 0) : at + by;
    if (next < 0 || next >= order.length) return;
    const k = order[next];
    show(k);
    if (t.start[k] < from || t.start[k] + t.duration[k] > from + span) view(t.start[k] - span / 4, span);
  };
  const at = event => from + (event.clientX - svg.getBoundingClientRect().left) / svg.getBoundingClientRect().width * span;
  const find = event => {
    const time = at(event), y = event.clientY - svg.getBoundingClientRect().top, lane = Math.floor((y - t.head) / t.lane_height);
    const slack = span / svg.getBoundingClientRect().width * 2;
    let best = -1, distance = slack;
    for (let k = 0; k < t.start.length; k++) {
      if (t.lane[k] !== lane) continue;
      const off = Math.max(t.start[k] - time, time - t.start[k] - t.duration[k], 0);
      if (off < distance || off === 0) { best = k; distance = off; if (!off) break; }
    }
    return best;
  };
  let grabbed = null;
  svg.addEventListener('pointerdown', event => { grabbed = [event.clientX, from]; svg.setPointerCapture(event.pointerId); box.classList.add('drag'); });
  svg.addEventListener('pointerup', () => { grabbed = null; box.classList.remove('drag'); });
  svg.addEventListener('pointermove', event => {
    if (grabbed) view(grabbed[1] - (event.clientX - grabbed[0]) / svg.getBoundingClientRect().width * span, span);
    else { const k = find(event); if (k >= 0 && k !== chosen) show(k); }
  });
  svg.addEventListener('dblclick', event => zoom(0.25, at(event)));
  svg.addEventListener('wheel', event => {
    if (event.ctrlKey || event.metaKey) { event.preventDefault(); zoom(event.deltaY > 0 ? 1.25 : 0.8, at(event)); }
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) { event.preventDefault(); view(from + event.deltaX / 1000 * span, span); }
  }, {passive: false});
  const acts = {ArrowLeft: () => view(from - span / 8, span), ArrowRight: () => view(from + span / 8, span), '+': () => zoom(0.5), '=': () => zoom(0.5),
    '-': () => zoom(2), '0': () => view(0, whole), n: () => step(1), p: () => step(-1)};
  box.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === 'BUTTON' && event.key === ' ') return;
    const act = acts[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  for (const [key, sign, words] of [['+', '+', 'Zoom in'], ['-', '−', 'Zoom out'], ['0', 'all', 'Show the whole step'], ['ArrowLeft', '←', 'Move left'], ['ArrowRight', '→', 'Move right'], ['p', '‹', 'Previous bar'], ['n', '›', 'Next bar']]) {
    const button = make('button', {type: 'button', textContent: sign, title: words, ariaLabel: words});
    button.addEventListener('click', acts[key]);
    tools.append(button);
  }
  tools.append(out);
  box.append(tools);
  for (const node of all('line, text', caps)) if (node.tagName === 'line' || /%$/.test(node.getAttribute('x'))) node.classList.add('tick');
  view(0, whole);
}
})();
