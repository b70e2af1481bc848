// The page: opens files, shows facts, and switches between the views.

import { Chunks } from './chunks.js';
import { Client } from './client.js';
import { Columns } from './columns.js';
import { Picture } from './picture.js';
import { Plot } from './plot.js';
import { Table } from './table.js';
import { Tree } from './tree.js';
import { colour, define, element, plain, prepared, short, size } from './text.js';

const $ = (selector) => document.querySelector(selector);
const VIEWS = ['picture', 'plot', 'table', 'chunks', 'check'];
/** The number of bytes that a view reads on its own, of a local file and of an address. */
const BUDGET = { file: 512 << 20, url: 24 << 20 };

/** Milliseconds that newer work waits for the first answer to the work before it. */
const PATIENCE = 200;
/** The work of each type that has no answer yet, with the newer work that waits for it. */
const running = new Map();
/** The chunks in which something cannot be read, for each entry of the open file. */
const damaged = new Map();

const app = {
  client: new Client((text) => died(text)),
  /** What is open: `{ file }` or `{ url }`, and its name. */
  opened: undefined,
  /** The facts about the items, from the worker. */
  items: undefined,
  /** What is shown; the address of the page has a copy. */
  state: {},

  budget: () => (app.opened?.url ? BUDGET.url : BUDGET.file),

  colours() {
    const { map, log, range, low, high } = app.state;
    const colours = { map, log: Boolean(log) };
    return range === 'fixed' ? { ...colours, low, high } : { ...colours, percent: Number(range) };
  },

  /**
   * Starts long work, and shows its progress. Newer work of the type waits for the first answer, but not for long: if each
   * ended the one before it, a picture that is moved would not be drawn.
   */
  run(type, content, update) {
    const before = running.get(type);
    if (before) {
      before.next = [content, update];
      return;
    }
    const work = {};
    const next = () => {
      clearTimeout(timer);
      if (running.get(type) !== work) return;
      running.delete(type);
      if (work.next) app.run(type, ...work.next);
    };
    const timer = setTimeout(next, PATIENCE);
    running.set(type, work);
    showProgress(0, type);
    app.client.call(type, content, (answer) => {
      next();
      // Sent before the worker saw that this view is not shown any more.
      if (VIEWS.includes(type) && app.state.view !== type) return;
      app.bytesRead = answer.bytesRead ?? app.bytesRead;
      const { facts } = answer;
      const progress = answer.progress ?? (facts?.blocks ? facts.done / facts.blocks : 1);
      showProgress(answer.done ? undefined : progress, type);
      showPartial(answer);
      update(answer);
    }).catch((error) => {
      next();
      showProgress(undefined);
      if (type === 'export') showSaved(error.message, true); else app.fail(error);
    });
  },

  /** Ends long work. */
  cancel(type) {
    running.delete(type);
    app.client.cancel(type);
  },

  fail(error) {
    $('#message p').textContent = error.message;
    $('#message').hidden = false;
  },

  say(text) {
    $('#value').value = text;
  },

  async showValue(at) {
    app.wanted = at;
    if (app.asking) return;
    app.asking = true;
    while (app.wanted) {
      const at = app.wanted;
      app.wanted = undefined;
      try {
        const text = await app.client.call('value', { at });
        app.say(`[${at.join(', ')}]  ${text}`);
      } catch (error) {
        app.say(`[${at.join(', ')}]  ${error.message}`);
      }
    }
    app.asking = false;
  },

  /** The chunks of what is shown in which something cannot be read. */
  damaged() {
    const key = app.state.entry ?? '';
    if (!damaged.has(key)) damaged.set(key, new Set());
    return damaged.get(key);
  },

  showStatistics,
  showLegend(low, high, isUnreadable) {
    // Only numbers with a fraction can be NaN.
    $('#nan').hidden = !/[fc]/.test(app.items.numbers[app.state.field].dtype);
    $('#unreadable').hidden = !isUnreadable;
    $('#low-text').value = short(low);
    $('#high-text').value = short(high);
    if (app.state.range !== 'fixed') {
      $('#low').value = short(low);
      $('#high').value = short(high);
    }
  },

  async paintBar(selector, map) {
    const colours = await app.client.call('colours', { map });
    const image = new ImageData(new Uint8ClampedArray(colours), colours.length / 4, 1);
    $(selector).getContext('2d').putImageData(image, 0, 0);
  },

  save,
};

const columns = new Columns(app);
app.columns = columns;
const views = { picture: new Picture(app), plot: new Plot(app), table: new Table(app), chunks: new Chunks(app) };

// Opening.

async function open(opened) {
  running.clear();
  damaged.clear();
  $('#message').hidden = true;
  $('#file-name').textContent = `Opening ${opened.name} …`;
  showProgress(undefined);
  app.opened = opened;
  let answer;
  try {
    answer = await app.client.call('open', { file: opened.file, url: opened.url });
  } catch (error) {
    if (app.opened === opened) await showDamaged(opened, error);
    return;
  }
  if (app.opened !== opened) return;
  $('#file-name').textContent = `${opened.name} · ${size(answer.size)}`;
  document.title = `${opened.name} · Blosc2 viewer`;
  $('#empty').hidden = true;
  $('#viewer').hidden = false;
  const saved = new URLSearchParams(location.hash.slice(1)).get('entry');
  const { contents, internal } = answer;
  app.contents = { contents: contents ?? [], internal: internal ?? [] };
  $('#internal').checked = Boolean(internal?.includes(saved));
  showContents();
  const isEntry = saved !== null && (contents?.includes(saved) || internal?.includes(saved));
  const first = isEntry ? saved : contents?.[0];
  if (first === undefined) showAnswer(answer); else await chooseEntry(first);
}

/** Shows the file, or an entry of the store. */
function showAnswer(answer, entry) {
  app.items = answer.items;
  // The fields of structures, and the columns of tables, are shown in the same way.
  if (app.items.columns) app.items.fields = app.items.columns.map(({ name }) => name);
  Object.values(views).forEach((view) => view.reset());
  columns.reset();
  showFacts(answer.facts);
  restore();
  app.state.entry = entry;
  showControls();
  show(app.state.view);
  showMetadata();
  // What had the focus is not visible any more.
  if ([null, document.body].includes(document.activeElement)) $(`#tab-${app.state.view}`).focus({ preventScroll: true });
}

async function chooseEntry(key) {
  running.clear();
  tree.select(key);
  const { opened } = app;
  try {
    const answer = await app.client.call('choose', { key });
    if (app.opened === opened) showAnswer(answer, key);
  } catch (error) {
    if (app.opened !== opened) return;
    app.fail(new Error(`${key}: ${error.message}`));
    showAnswer({ facts: {}, items: { reason: error.message } }, key);
  }
}

const tree = new Tree($('#tree'), (key) => {
  // The view of another entry.
  history.replaceState(null, '', location.pathname + location.search);
  $('#message').hidden = true;
  chooseEntry(key);
});

/** Lists the entries of a store. */
function showContents() {
  const { contents, internal } = app.contents;
  $('#contents').hidden = contents.length === 0;
  $('#internal-label').hidden = internal.length === 0;
  tree.fill($('#internal').checked ? [...contents, ...internal].sort() : contents);
}
$('#internal').addEventListener('change', () => {
  showContents();
  tree.select(app.state.entry ?? '');
});

/** Shows why a file cannot be opened, and the report of the check if it is one of Blosc2. */
async function showDamaged(opened, error) {
  app.fail(new Error(`${opened.name}: ${error.message}`));
  app.items = { reason: error.message };
  app.state = { view: 'check' };
  const report = await check(false);
  if (app.opened !== opened) return;
  const isKnown = Boolean(report?.kind);
  $('#file-name').textContent = isKnown ? opened.name : '';
  $('#viewer').hidden = !isKnown;
  $('#empty').hidden = isKnown;
  if (!isKnown) { app.opened = undefined; return; }
  showFacts({});
  app.contents = { contents: [], internal: [] };
  showContents();
  $('#metadata').hidden = true;
  show('check');
}

function died(text) {
  if (!app.opened) return app.fail(new Error(`The viewer cannot start: ${text}`));
  const { opened } = app;
  app.opened = undefined;
  $('#viewer').hidden = true;
  $('#empty').hidden = false;
  $('#file-name').textContent = '';
  app.fail(new Error(`${opened.name}: the viewer has failed on this file and was started again. Please report this: ${text}`));
}

function openFile(file) {
  history.replaceState(null, '', `${location.pathname}${location.hash}`);
  open({ file, name: file.name });
}

function openUrl(text) {
  let url;
  try {
    url = new URL(text, location.href);
  } catch {
    return app.fail(new Error(`This is not an address: ${text}`));
  }
  if (!['http:', 'https:'].includes(url.protocol)) {
    return app.fail(new Error(`Addresses start with http or https, this one with ${url.protocol}`));
  }
  const query = new URLSearchParams(location.search);
  query.set('url', text);
  history.replaceState(null, '', `?${query}${location.hash}`);
  open({ url: url.href, name: decodeURIComponent(url.pathname.split('/').pop() || url.host) });
}

// Facts.

function showFacts(facts) {
  const entries = Object.entries(facts).filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0));
  const shown = entries.map(([name, value]) => {
    const isBytes = ['nbytes', 'cbytes', 'chunksize'].includes(name) && value >= 1024;
    return [name, isBytes ? `${value} (${size(value)})` : plain(value)];
  });
  define($('#facts'), shown);
  const { shape, nrows, columns, dtype, nbytes, cbytes, ratio } = facts;
  $('#brief').textContent = [
    shape?.length ? `${shape.join(' x ')} items` : '',
    nrows === undefined ? '' : `${plural(nrows, 'row')}${columns ? ` x ${plural(columns, 'column')}` : ''}`,
    dtype ?? '',
    ratio ? `${size(nbytes)} stored in ${size(cbytes)} (ratio ${plain(ratio)})` : '',
  ].filter(Boolean).join(', ');
}

async function showMetadata() {
  const { meta, vlmeta } = await app.client.call('metalayers').catch((error) => { app.fail(error); return {}; });
  const layers = [...(meta ?? []).map((layer) => [layer, 'meta']), ...(vlmeta ?? []).map((layer) => [layer, 'vlmeta'])];
  $('#metadata').hidden = layers.length === 0;
  $('#layers').replaceChildren(...layers.map(([layer, kind]) => element('details', {},
    element('summary', {}, `${layer.name} `, element('span', { className: 'quiet' }, kind)),
    element('pre', { tabIndex: 0 }, layer.error ?? layer.text))));
}

// The state, and its copy in the address of the page.

const NUMBERS = ['at', 'axes', 'center', 'scale', 'span', 'tableAt'];

function restore() {
  const { shape, numbers } = app.items;
  const ndim = shape?.length ?? 0;
  const state = {
    view: VIEWS.find((view) => isPossible(view)),
    at: (shape ?? []).map((side) => Math.floor(Math.max(0, side - 1) / 2)),
    axes: [ndim - 2, ndim - 1],
    axis: ndim === 0 ? 0 : shape.indexOf(Math.max(...shape)),
    field: 0,
    map: app.items.maps?.[0],
    range: '2',
    square: ndim < 2 || Math.max(shape[ndim - 1] / shape[ndim - 2], shape[ndim - 2] / shape[ndim - 1]) <= 12,
  };
  const saved = new URLSearchParams(location.hash.slice(1));
  for (const [key, text] of saved) {
    if (NUMBERS.includes(key)) {
      const list = text.split(',').map(Number);
      if (list.every(Number.isFinite)) state[key] = list;
    } else if (['log', 'plotLog', 'square'].includes(key)) {
      state[key] = text === '1';
    } else if (['field', 'axis', 'low', 'high', 'chunk'].includes(key)) {
      if (Number.isFinite(Number(text))) state[key] = Number(text);
    } else if (['view', 'map', 'range', 'entry', 'column'].includes(key)) {
      state[key] = text;
    }
  }
  // The address can be of another file.
  const isAxis = (axis) => Number.isInteger(axis) && axis >= 0 && axis < ndim;
  const fits = isPossible(state.view)
    && (state.axes.length === 2 && state.axes[0] !== state.axes[1] && state.axes.every(isAxis) || ndim < 2)
    && (isAxis(state.axis) || ndim === 0)
    && state.at.length === ndim && state.at.every((at, axis) => Number.isInteger(at) && at >= 0 && at < Math.max(1, shape[axis]))
    && state.field < Math.max(1, numbers?.length ?? 0)
    && (!state.scale || state.scale.length === 2 && state.scale.every((each) => each > 0))
    && (!state.center || state.center.length === 2)
    && (!state.span || state.span.length === 2 && state.span[0] < state.span[1]);
  if (!fits && saved.size > 0) {
    history.replaceState(null, '', location.pathname + location.search);
    return restore();
  }
  if (state.scale && !state.center) state.scale = undefined;
  app.state = state;
}

let planned;
function save() {
  clearTimeout(planned);
  planned = setTimeout(() => {
    if (!app.opened) return;
    history.replaceState(null, '', `${location.pathname}${location.search}#${hash()}`);
  }, 300);
}

function hash() {
  const parts = Object.entries(app.state).filter(([, value]) => value !== undefined).map(([key, value]) => {
    if (typeof value === 'boolean') return [key, value ? '1' : '0'];
    const round = (number) => Number(number.toPrecision(10));
    return [key, Array.isArray(value) ? value.map(round).join(',') : String(value)];
  });
  return parts.map(([key, value]) => `${key}=${encodeURIComponent(value).replaceAll('%2C', ',')}`).join('&');
}

// Views.

/** Whether a view can show the items. */
function isPossible(view) {
  const { shape, numbers } = app.items;
  if (view === 'check') return true;
  if (!shape) return false;
  const isEmpty = shape.includes(0);
  if (view === 'picture') return shape.length >= 2 && numbers.length > 0 && !isEmpty;
  if (view === 'plot') return shape.length >= 1 && numbers.length > 0 && !isEmpty;
  if (view === 'table') return true;
  return app.items.grid !== undefined;
}

function show(view) {
  app.state.view = view;
  for (const name of VIEWS) {
    const tab = $(`#tab-${name}`);
    tab.setAttribute('aria-selected', name === view);
    tab.tabIndex = name === view ? 0 : -1;
    tab.disabled = !isPossible(name);
    tab.title = tab.disabled ? whyNot(name) : '';
    $(`#panel-${name}`).hidden = name !== view;
  }
  const { table, shape } = app.items;
  const isTable = Boolean(table && app.items.columns.some(({ kind }) => kind !== 'any'));
  $('#summary').hidden = !['picture', 'plot', 'table'].includes(view) || table && !isTable;
  $('#summary-title').textContent = isTable ? 'A column' : view === 'table' ? 'Save' : 'What is visible';
  $('#column-bar').hidden = $('#column-npy').hidden = !isTable;
  $('.columns').hidden = view === 'table' && !isTable;
  $('#scroller').classList.toggle('short', isTable);
  $('[data-format=npy]').hidden = isTable;
  $('[data-format=csv]').textContent = isTable ? 'rows as .csv' : '.csv';
  $('#slice').placeholder = shape?.length ? ['0:10', ...shape.slice(1).map(() => ':')].join(', ') : '';
  showScope();
  $('#partial').hidden = $('#scan').hidden = true;
  $('#index').value = '';
  showIndexValue('');
  if (table) columns.pause(); else showStatistics();
  const hint = { picture: 'Point at an item, or tap it, to see its value.', plot: 'Point at an item, or tap it, to see its value.', chunks: 'Point at a chunk, or choose one.' };
  app.say(app.items.shape || view !== 'check' ? hint[view] ?? '' : `Only the facts and the check are shown: ${app.items.reason}`);
  running.clear();
  for (const type of ['picture', 'plot', 'scan', 'map', 'column', 'export']) app.cancel(type);
  showProgress(undefined);
  showSelection();
  views[view]?.show();
  save();
}

function whyNot(view) {
  if (!app.items.shape) return app.items.reason ?? '';
  if (app.items.table) return `${view === 'chunks' ? 'The map of the chunks' : `A ${view}`} shows an array; this is a table.`;
  if (app.items.shape.includes(0)) return 'The array has no items.';
  if (!app.items.numbers.length) return 'The items are not numbers.';
  return view === 'picture' ? 'A picture needs at least two axes.' : 'A plot needs an axis.';
}

/** Shows what the controls of the picture and of the plot are set to. */
function showControls() {
  const { state, items } = app;
  $('#map').replaceChildren(...(items.maps ?? []).map((name) => element('option', { value: name }, name)));
  if (!items.maps?.includes(state.map)) state.map = items.maps?.[0];
  $('#map').value = state.map;
  if (![...$('#range').options].some((option) => option.value === state.range)) state.range = '2';
  $('#range').value = state.range;
  $('#fixed').hidden = state.range !== 'fixed';
  $('#low').value = state.low ?? '';
  $('#high').value = state.high ?? '';
  $('#log').checked = Boolean(state.log);
  $('#plot-log').checked = Boolean(state.plotLog);
  $('#square').checked = Boolean(state.square);
  if (state.map) app.paintBar('#bar', state.map);
}

/** Shows the choice of axes, of indices of the other axes, and of a field. */
function showSelection() {
  const { state, items } = app;
  const controls = [];
  const ndim = items.shape?.length ?? 0;
  const choice = (label, options, value, change) => {
    const select = element('select', {}, ...options.map(([value, text]) => element('option', { value }, text)));
    select.value = value;
    select.addEventListener('change', () => change(Number(select.value)));
    controls.push(element('label', {}, label, ' ', select));
  };
  if (['picture', 'plot'].includes(state.view) && items.numbers?.length > 1) {
    choice('field', items.numbers.map((number, k) => [k, number.name]), state.field, (field) => {
      state.field = field;
      views[state.view].changed();
    });
  }
  const axes = items.shape?.map((side, axis) => [axis, `axis ${axis} (${side})`]) ?? [];
  const varied = state.view === 'plot' ? [state.axis] : state.axes;
  if (ndim > 2 && ['picture', 'table'].includes(state.view) || ndim > 1 && state.view !== 'plot' && state.view !== 'chunks' && state.view !== 'check') {
    ['rows', 'columns'].forEach((label, k) => choice(label, axes, state.axes[k], (axis) => {
      if (state.axes[1 - k] === axis) state.axes[1 - k] = state.axes[k];
      state.axes[k] = axis;
      state.center = state.scale = state.tableAt = undefined;
      views.picture.reset();
      views.table.reset();
      showSelection();
      views[state.view].show();
    }));
  }
  if (ndim > 1 && state.view === 'plot') {
    choice('axis', axes, state.axis, (axis) => {
      state.axis = axis;
      state.span = undefined;
      showSelection();
      views.plot.show();
    });
  }
  if (['picture', 'plot', 'table'].includes(state.view)) {
    items.shape?.forEach((side, axis) => {
      if (varied.includes(axis) || ndim < 2) return;
      const limits = { min: 0, max: side - 1, value: state.at[axis] };
      const slider = element('input', { type: 'range', ...limits, 'aria-label': `Index of axis ${axis}` });
      const number = element('input', { type: 'number', ...limits, 'aria-label': `Index of axis ${axis}, as a number` });
      const change = (from, to) => {
        const index = Math.min(Math.max(0, Math.round(from.valueAsNumber || 0)), side - 1);
        to.value = index;
        state.at[axis] = index;
        if (state.view === 'table') views.table.read(); else views[state.view].changed();
        save();
      };
      slider.addEventListener('input', () => change(slider, number));
      number.addEventListener('change', () => change(number, slider));
      controls.push(element('span', { className: 'axis' }, element('label', {}, `axis ${axis}`), slider, number, element('span', { className: 'quiet' }, `of ${side}`)));
    });
  }
  // The table of one axis has its own field for the row.
  $('#go-to').hidden = !(['picture', 'plot', 'table'].includes(state.view) && ndim > (state.view === 'table' ? 1 : 0));
  $('#index').size = Math.max(8, 5 * ndim);
  $('#index').placeholder = state.at?.join(', ') ?? '';
  $('#axes').replaceChildren(...controls);
  $('#selection').hidden = controls.length === 0 && $('#go-to').hidden;
}

const numbersOf = (text) => text.replace(/[[\]()]/g, ' ').split(/[\s,]+/).filter(Boolean).map(Number);

/** Shows an item, and its value beside the field of the index. An index below 0 counts from the end. */
async function goTo(indices) {
  const { state, items } = app;
  const { shape } = items;
  const at = indices.map((index, axis) => (index < 0 ? index + shape[axis] : index));
  if (at.length !== shape.length || !at.every((index, axis) => Number.isInteger(index) && index >= 0 && index < shape[axis])) {
    const last = shape.map((side) => side - 1).join(', ');
    return showIndexValue(`Expected ${shape.length === 1 ? 'an index' : `${shape.length} indices`} from ${shape.map(() => 0).join(', ')} to ${last}`, true);
  }
  state.at = [...at];
  showSelection();
  views[state.view].goTo(at);
  $({ picture: '#picture', plot: '#plot', table: '#scroller' }[state.view]).scrollIntoView({ block: 'nearest' });
  if (items.table) return;
  showIndexValue('…');
  const answer = app.client.call('value', { at }).then((text) => [text], (error) => [error.message, true]);
  const [text, isBad] = await answer;
  // Meanwhile another one can be shown.
  if (app.state === state && state.at.join() === at.join()) showIndexValue(`[${at.join(', ')}]  ${text}`, isBad);
}

function showIndexValue(text, isBad = false) {
  $('#index-value').value = text;
  $('#index-value').classList.toggle('bad', isBad);
  $('#index').setAttribute('aria-invalid', isBad);
}

function showProgress(part, type) {
  $('#progress').hidden = part === undefined;
  if (part === undefined) return;
  $('#progress progress').value = part;
  $('#progress').dataset.type = type;
  $('#progress-text').textContent = `${Math.round(part * 100)} %`;
}

/** States what was not read of a view. */
function showPartial({ type, facts, errors, count, stopped, done, progress }) {
  if (!errors) return;
  const what = type === 'column' ? 'part' : 'block';
  const chunks = [...new Set((facts?.unreadable ?? []).map(({ chunk }) => chunk))];
  for (const chunk of chunks) app.damaged().add(chunk);
  const links = chunks.slice(0, 3).flatMap((chunk) => [' ', chunkButton(chunk)]);
  const where = links.length ? [', in', ...links, chunks.length > 3 ? ' and others' : ''] : [];
  const problems = count ? [`${plural(count, what)} cannot be read`, ...where, `: ${errors[0]}`] : [];
  const read = facts ? `${facts.done} of ${facts.blocks} blocks were read` : `${Math.round(progress * 100)} % of the rows were read`;
  const part = stopped ? `A sample: ${read}.` : '';
  $('#partial').hidden = !done || !(count || part);
  $('#partial-text').replaceChildren(part, part && count ? ' ' : '', ...problems);
  $('#read-all').hidden = !stopped;
}

/**
 * Shows statistics and the histogram; without statistics, nothing. If they are not those of all items, each line says of
 * which `part` they are. `canScan` states whether those of all visible items can be computed.
 */
function showStatistics(statistics, part = 'sample', canScan = false) {
  const { all, count, rows, nulls, nan, infinite, min, max, mean, median, kept, std, bins } = statistics ?? {};
  const of = all ? '' : ` (${part})`;
  $('#scan').hidden = !canScan;
  const entries = [];
  if (rows !== undefined) entries.push(['rows', all ? `all ${rows}` : `${rows} of ${app.items.shape[0]}`]);
  if (statistics) entries.push([`count${of}`, String(count)]);
  if (nulls) entries.push(['null', String(nulls)]);
  if (nan) entries.push(['NaN', String(nan)]);
  if (infinite) entries.push(['infinite', String(infinite)]);
  if (min !== undefined) {
    const place = (text, at) => {
      const button = element('button', { type: 'button', title: 'Show it' }, app.items.table ? `row ${at}` : `[${at.join(', ')}]`);
      button.addEventListener('click', () => {
        if (!app.items.table) $('#index').value = at.join(', ');
        goTo(at);
      });
      return element('span', {}, `${text} at `, button);
    };
    entries.push([`min${of}`, place(statistics.minText ?? short(min), statistics.minAt)]);
    entries.push([`max${of}`, place(statistics.maxText ?? short(max), statistics.maxAt)]);
    // The middle of times has no use as a number.
    if (!statistics.maxText || Number.isFinite(Number(statistics.maxText)) || /^(True|False)$/.test(statistics.maxText)) {
      entries.push([`mean${of}`, short(mean)], [`median${of}`, `${kept ? '' : 'about '}${short(median)}`], [`std${of}`, short(std)]);
    }
  }
  define($('#statistics'), entries);
  const { context, width, height } = prepared($('#histogram'));
  $('#histogram-text').replaceChildren();
  if (!bins) return;
  $('#histogram-text').replaceChildren(...[statistics.minText ?? short(min), statistics.maxText ?? short(max)].map((text) => element('span', {}, text)));
  const highest = Math.max(...bins);
  context.fillStyle = colour('accent');
  bins.forEach((bin, k) => {
    const bar = bin === 0 ? 0 : Math.max(1, bin / highest * (height - 2));
    context.fillRect(k * width / bins.length, height - bar, width / bins.length - 1, bar);
  });
  $('#histogram').setAttribute('aria-label',
    `Histogram of the values from ${short(min)} to ${short(max)} in ${bins.length} bins`);
}

// The report of the check, in a worker of its own: the views can be used meanwhile.

let checker;
async function check(content) {
  checker?.stop();
  $('#report').dataset.done = false;
  const progress = element('progress', { max: 1, 'aria-label': 'Checking' });
  const read = element('span', { className: 'quiet' });
  const moved = ({ bytesRead, size: total }) => {
    progress.value = Math.min(bytesRead / total, 1);
    read.textContent = `${size(bytesRead)} read of a file of ${size(total)}`;
  };
  const client = new Client((text) => { endCheck(`The check has failed: ${text}`); }, moved);
  checker = client;
  const { opened } = app;
  const cancel = element('button', { type: 'button' }, 'Cancel');
  cancel.addEventListener('click', () => { client.stop(); endCheck('The check was cancelled.'); });
  $('#report').replaceChildren(element('p', {}, 'Checking … ', progress, ' ', read, ' ', cancel));
  try {
    const report = await client.call('check', { file: opened.file, url: opened.url, content });
    if (checker === client) showReport(report);
    return report;
  } catch (error) {
    if (checker === client) endCheck(error.message);
  } finally {
    client.stop();
  }
}

function endCheck(text) {
  checker = undefined;
  $('#report').replaceChildren(element('p', {}, text));
}

const plural = (count, name) => `${count} ${name}${count === 1 ? '' : 's'}`;

/** The heading of a report: what the check has shown, and what it cannot show. */
function verdictOf({ good, complete, content, unverified, members }) {
  if (!good) return 'The file is damaged';
  if (!content) return 'The structure is sound; the data was not checked';
  const decoded = complete ? 'All blocks decode.' : 'All checked blocks decode.';
  if (unverified === 0) return `${decoded} They agree with the checksums.`;
  const files = members && unverified > 1 ? `${unverified} members have` : 'The file has';
  return `${decoded} ${files} no checksums: changed values cannot be detected.`;
}

function showReport(report) {
  const { kind, good, complete, content, omitted, findings, members } = report;
  const scope = content ? 'The structure and all blocks were checked.' : 'The structure was checked; no block was decoded.';
  const verdict = verdictOf(report);
  for (const { file, chunk, severity } of findings) {
    if (chunk === null || severity !== 'error') continue;
    const key = keyOf(file) ?? '';
    damaged.set(key, (damaged.get(key) ?? new Set()).add(chunk));
  }
  const parts = [
    element('p', { className: `verdict ${good ? 'good' : 'bad'}` }, verdict),
    element('p', { className: 'quiet' }, `${kind ?? 'unknown kind'}. ${scope}${complete ? '' : ' Parts exceed the limits of this page and were not checked.'}`),
  ];
  if (findings.length) {
    const names = [...(members ? ['member'] : []), 'severity', 'offset', 'part', 'rule', 'expected', 'found'];
    parts.push(element('p', { className: 'quiet narrow' }, 'Swipe the findings sideways to see all columns.'));
    parts.push(reportTable('Findings', names, findings.map((finding) => [
      ...(members ? [element('td', {}, finding.file ?? '')] : []),
      element('td', { className: `tight ${finding.severity}` }, finding.severity), element('td', { className: 'tight' }, finding.part === 'file' && !finding.len ? '' : `${finding.offset}, ${size(finding.len)}`),
      placeOf(finding), element('td', { className: 'tight' }, finding.rule), element('td', { className: 'loose' }, finding.expected), element('td', { className: 'loose' }, finding.found)])));
  }
  if (omitted) parts.push(element('p', {}, `${omitted} more findings are not listed.`));
  if (members) {
    parts.push(element('p', { className: 'quiet' }, `${plural(members.length, 'member')}, ${content ? 'with their checksums' : 'without their content'}:`));
    parts.push(reportTable('Members', ['member', 'format', 'result'], members.map(({ file, kind, errors, warnings, notes }) => {
      const counts = [[errors, 'error'], [warnings, 'warning'], [notes, 'note']].filter(([count]) => count);
      const text = counts.map(([count, name]) => plural(count, name)).join(', ') || 'good';
      return [element('td', {}, file), element('td', {}, kind ?? ''), element('td', { className: errors ? 'error' : '' }, text)];
    })));
  }
  $('#report').replaceChildren(...parts);
  $('#report').dataset.done = 'true';
}

function reportTable(label, names, rows) {
  const head = element('thead', {}, element('tr', {}, ...names.map((name) => element('th', { scope: 'col' }, name))));
  const body = element('tbody', {}, ...rows.map((cells) => element('tr', {}, ...cells)));
  return element('div', { className: 'wide', tabIndex: 0, role: 'region', 'aria-label': label }, element('table', { className: label.toLowerCase() }, head, body));
}

/** The key of a member of the checked store; `undefined` if it is not an entry of the tree. */
function keyOf(file) {
  if (!file) return undefined;
  const key = file.startsWith('/') ? file : `/${file.replace(/\.\w+$/, '')}`;
  return app.contents.contents.includes(key) || app.contents.internal.includes(key) ? key : undefined;
}

/** The part of a finding; a chunk is a button that shows it. */
function placeOf({ file, part, chunk }) {
  const key = keyOf(file);
  if (chunk === null || (file ? key === undefined : !isPossible('chunks'))) return element('td', { className: 'tight' }, part);
  return element('td', { className: 'tight' }, chunkButton(chunk, key));
}

/** A button that shows a chunk, of the entry `key` if it is set, in the map. */
function chunkButton(chunk, key) {
  const button = element('button', { type: 'button', title: 'Show it in the map of the chunks' }, `chunk ${chunk}`);
  button.addEventListener('click', async () => {
    if (key !== undefined) await chooseEntry(key);
    if (!isPossible('chunks')) return;
    app.state.chunk = chunk;
    show('chunks');
    views.chunks.choose(chunk);
    $('#chunks').focus();
  });
  return button;
}

// Saving.

/** The ranges of what is saved, for each axis, and the axes that the saved array has. */
function savedRanges() {
  const { items } = app;
  const scope = $('#scope').value;
  if (scope === 'all') return { ranges: items.shape.map((side) => [0, side]), kept: items.shape.map(() => true) };
  if (scope === 'slice') return parseSlice($('#slice').value, items.shape);
  return shownRanges();
}

/** The ranges of what is visible, and the axes that vary in it. */
function shownRanges() {
  const { state, items } = app;
  const ndim = items.shape.length;
  const view = views[state.view];
  const ranges = state.at.map((index) => [index, index + 1]);
  const kept = ranges.map(() => false);
  const shown = view.visible();
  const set = (axis, range) => { ranges[axis] = range; kept[axis] = true; };
  if (state.view === 'plot') set(state.axis, shown);
  else if (ndim === 1) set(0, shown[0]);
  else if (ndim > 1) state.axes.forEach((axis, k) => set(axis, shown[k]));
  return { ranges, kept };
}

/** The ranges of a slice in the notation of Python, without steps: `0:10, :, -1`. It has at least one item of each axis. */
function parseSlice(text, shape) {
  const parts = text.replace(/[[\]]/g, '').split(',').map((part) => part.trim());
  if (parts.length > shape.length) throw new Error(`The slice ${text} has ${plural(parts.length, 'part')}, but there ${shape.length === 1 ? 'is 1 axis' : `are ${shape.length} axes`}.`);
  const kept = shape.map(() => true);
  const ranges = shape.map((side, axis) => {
    const part = parts[axis] ?? ':';
    const found = /^(?:(-?\d+)|(-?\d+)? *: *(-?\d+)?)$/.exec(part);
    if (!found) throw new Error(`Expected an index or a range such as 0:10 for axis ${axis}, found ${part || 'nothing'}`);
    const [, index, first, last] = found;
    const number = (text, missing) => (text === undefined ? missing : Number(text) < 0 ? Number(text) + side : Number(text));
    if (index !== undefined) {
      kept[axis] = false;
      const at = number(index);
      if (!(at >= 0 && at < side)) throw new Error(`The index ${index} of axis ${axis} is not from 0 to ${side - 1}.`);
      return [at, at + 1];
    }
    const [start, end] = [number(first, 0), number(last, side)];
    if (start < 0 || end > side) throw new Error(`The range ${part} of axis ${axis} is not within 0:${side}.`);
    if (start >= end && part !== ':') throw new Error(`The range ${part} of axis ${axis} has no items.`);
    return [start, end];
  });
  return { ranges, kept };
}

/** Shows what saving has done, or why nothing is saved. */
function showSaved(text, isBad = false) {
  $('#save-text').value = text;
  $('#save-text').classList.toggle('bad', isBad);
  $('#slice').setAttribute('aria-invalid', isBad && !$('#slice').hidden);
}

/** Shows what the slice is that would be saved. */
function showSlice() {
  if ($('#slice').hidden) return showSaved('');
  if ($('#slice').value.trim() === '') return showSaved(`An example: ${$('#slice').placeholder} (the end of a range is not included)`);
  try {
    const { ranges } = savedRanges();
    const sides = ranges.map(([start, end]) => end - start);
    const count = sides.reduce((product, side) => product * side, 1);
    const what = app.items.table ? plural(count, 'row') : `${sides.join(' x ')} items, ${size(count * app.items.typesize)}`;
    showSaved(`${what} (the end of a range is not included)`);
  } catch (error) {
    showSaved(error.message, true);
  }
}

async function saveAs(format, column) {
  const base = app.opened.name.replace(/\.\w+$/, '') + (app.state.entry ?? '').replace(/\/$/, '').replaceAll('/', '_');
  if (format === 'png') return download(await views[app.state.view].png(), `${base}.png`);
  let request;
  try {
    request = { ...savedRanges(), column };
  } catch (error) {
    return showSaved(error.message, true);
  }
  showSaved('');
  const part = $('#scope').value === 'all' ? '' : request.ranges.map(([start, end], axis) => (request.kept[axis] ? `${start}-${end}` : start)).join('_');
  const name = [base, column, part].filter(Boolean).join('_');
  app.run('export', { request, format }, ({ done, bytes }) => {
    if (done) download(new Blob([bytes]), `${name}.${format}`);
  });
}

function download(blob, name) {
  const link = element('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  showSaved(`Saved ${name}, ${size(blob.size)}.`);
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// What the user does.

$('#open').addEventListener('click', () => $('#file').click());
$('#choose').addEventListener('click', () => $('#file').click());
$('#file').addEventListener('change', () => {
  const [file] = $('#file').files;
  if (file) openFile(file);
  $('#file').value = '';
});
$('#open-url').addEventListener('click', () => { $('#url-dialog').returnValue = ''; $('#url-dialog').showModal(); });
$('#url-dialog').addEventListener('close', () => {
  if ($('#url-dialog').returnValue === 'open' && $('#url').value) openUrl($('#url').value);
});
$('#url').addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && $('#url').checkValidity()) { event.preventDefault(); $('#url-dialog').close('open'); }
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'o' && !event.ctrlKey && !event.metaKey && !event.altKey && event.target.closest?.('input, select, dialog') === null) $('#open').click();
});
$('#message button').addEventListener('click', () => { $('#message').hidden = true; });

let inside = 0;
document.addEventListener('dragenter', (event) => { event.preventDefault(); inside += 1; document.body.classList.add('dragging'); });
document.addEventListener('dragleave', () => { inside -= 1; if (inside === 0) document.body.classList.remove('dragging'); });
document.addEventListener('dragover', (event) => event.preventDefault());
document.addEventListener('drop', (event) => {
  event.preventDefault();
  inside = 0;
  document.body.classList.remove('dragging');
  const [file] = event.dataTransfer.files;
  if (file) openFile(file);
});

$('#tabs').addEventListener('click', (event) => {
  const name = event.target.id?.replace('tab-', '');
  if (VIEWS.includes(name)) show(name);
});
$('#tabs').addEventListener('keydown', (event) => {
  const possible = VIEWS.filter(isPossible);
  const at = possible.indexOf(app.state.view);
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: possible.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  const view = possible[(next + possible.length) % possible.length];
  show(view);
  $(`#tab-${view}`).focus();
});

/** Repaints the picture, without reading. */
function repaint() {
  $('#picture').dataset.done = false;
  const colours = app.colours();
  app.client.call('paint', { colours });
  // A picture whose reading has not started yet.
  const waiting = running.get('picture')?.next;
  if (waiting) waiting[0].colours = colours;
  save();
}
$('#map').addEventListener('change', () => { app.state.map = $('#map').value; app.paintBar('#bar', app.state.map); repaint(); });
$('#range').addEventListener('change', () => {
  app.state.range = $('#range').value;
  $('#fixed').hidden = app.state.range !== 'fixed';
  readFixed();
  repaint();
});
function readFixed() {
  const [low, high] = [Number($('#low').value), Number($('#high').value)];
  if (Number.isFinite(low) && Number.isFinite(high)) Object.assign(app.state, { low, high });
}
for (const id of ['#low', '#high']) $(id).addEventListener('change', () => { readFixed(); repaint(); });
$('#log').addEventListener('change', () => { app.state.log = $('#log').checked; repaint(); });
$('#square').addEventListener('change', () => { app.state.square = $('#square').checked; views.picture.fit(); });
$('#plot-log').addEventListener('change', () => { app.state.plotLog = $('#plot-log').checked; views.plot.draw(); save(); });
for (const [id, view, action] of [
  ['#zoom-in', 'picture', (view) => view.zoom(1.5)], ['#zoom-out', 'picture', (view) => view.zoom(1 / 1.5)], ['#fit', 'picture', (view) => view.fit()],
  ['#plot-in', 'plot', (view) => view.zoom(1.5)], ['#plot-out', 'plot', (view) => view.zoom(1 / 1.5)], ['#plot-fit', 'plot', (view) => view.fit()],
]) $(id).addEventListener('click', () => action(views[view]));
$('#cancel').addEventListener('click', () => { running.clear(); app.client.cancel($('#progress').dataset.type); showProgress(undefined); });
const enterIndex = () => { app.index = $('#index').value; goTo(numbersOf(app.index)); };
$('#index').addEventListener('change', enterIndex);
// The same text again is no change.
$('#index').addEventListener('keydown', (event) => { if (event.key === 'Enter' && $('#index').value === app.index) enterIndex(); });
$('#scan').addEventListener('click', () => views.picture.scan(shownRanges().ranges));
$('#read-all').addEventListener('click', () => (app.items.table ? columns : views[app.state.view]).readAll());
/** Shows what the chosen part needs: the field of the slice. A picture is of what is visible. */
function showScope() {
  $('#slice').hidden = $('#scope').value !== 'slice';
  $('[data-format=png]').hidden = $('#scope').value !== 'visible' || app.state.view === 'table';
  showSlice();
}
$('#slice').addEventListener('input', showSlice);
$('#slice').addEventListener('keydown', (event) => { if (event.key === 'Enter') saveAs($('[data-format=npy]').hidden ? 'csv' : 'npy'); });
$('#scope').addEventListener('change', () => {
  showScope();
  if (!$('#slice').hidden) $('#slice').focus();
});
$('#column-npy').addEventListener('click', () => saveAs('npy', columns.shown));
$('#check-structure').addEventListener('click', () => check(false));
$('#check-all').addEventListener('click', () => check(true));
for (const button of document.querySelectorAll('[data-format]')) button.addEventListener('click', () => saveAs(button.dataset.format));
$('#link').addEventListener('click', async () => {
  history.replaceState(null, '', `${location.pathname}${location.search}#${hash()}`);
  try {
    await navigator.clipboard.writeText(location.href);
    app.say(app.opened.url ? 'The link was copied.' : 'The link was copied. It restores this view after the same file is opened.');
  } catch {
    app.say('The address of this page is a link to this view.');
  }
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { if (app.opened) views[app.state.view]?.draw?.(); });

const url = new URLSearchParams(location.search).get('url');
if (url) openUrl(url);
document.documentElement.dataset.ready = 'true';
