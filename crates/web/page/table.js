// The table of values: only the visible cells are read.

import { eachFrame, element } from './text.js';

const ROW = 26;
/** The width of columns, before any was shown. */
const COLUMN = 80;
/** Browsers do not lay out longer elements. */
const MAX_LENGTH = 8_000_000;

export class Table {
  constructor(app) {
    this.app = app;
    this.scroller = document.querySelector('#scroller');
    this.space = document.querySelector('#space');
    this.window = document.querySelector('#window');
    this.table = document.querySelector('#table');
    this.column = COLUMN;
    this.top = 0;
    this.left = 0;
    this.read = eachFrame(() => this.#read());
    this.scroller.addEventListener('scroll', () => this.#scrolled());
    // Scrolls by single rows, also if a pixel of the scroll bar stands for many.
    this.scroller.addEventListener('wheel', (event) => {
      event.preventDefault();
      const unit = event.deltaMode === 1 ? 1 : 1 / ROW;
      const [y, x] = event.shiftKey ? [0, event.deltaY] : [event.deltaY, event.deltaX];
      this.#moveBy(y * unit, x / this.column);
    }, { passive: false });
    this.scroller.addEventListener('keydown', (event) => {
      const page = this.#visibleRows - 1;
      const moves = {
        ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1],
        PageDown: [page, 0], PageUp: [-page, 0], Home: [-Infinity, 0], End: [Infinity, 0],
      };
      const move = moves[event.key];
      if (!move || event.target !== this.scroller) return;
      event.preventDefault();
      this.#moveBy(...move);
    });
    for (const [name, id] of [['top', 'row'], ['left', 'column']]) {
      const input = document.querySelector(`#${id}`);
      input.addEventListener('change', () => {
        const number = Number(input.value);
        if (!Number.isInteger(number)) return;
        this[name] = number;
        this.#moveBy(0, 0);
      });
    }
    new ResizeObserver(() => { if (this.app.state.view === 'table' && this.app.items?.shape) this.show(); }).observe(this.scroller);
  }

  /** Shows an item, and marks it. */
  goTo(at) {
    const { row, col } = this.#axes;
    this.marked = [at[row], at[col] ?? 0];
    if (row !== undefined) this.top = at[row] - Math.floor(this.#visibleRows / 2);
    if (col !== undefined) this.left = at[col] - Math.floor(this.#visibleColumns / 2);
    this.#moveBy(0, 0);
  }

  reset() {
    this.marked = undefined;
    this.top = this.left = 0;
    this.column = COLUMN;
  }

  get #visibleRows() {
    return Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 1);
  }

  get #visibleColumns() {
    return Math.max(1, Math.ceil(this.scroller.clientWidth / this.column));
  }

  /** The axes of rows and columns; fields are columns of arrays of one axis. */
  get #axes() {
    const { items, state } = this.app;
    if (items.shape.length === 0) return { rows: 1, cols: 1 };
    if (items.shape.length === 1) return { row: 0, rows: items.shape[0], cols: items.fields?.length ?? 1, fields: items.fields };
    const [row, col] = state.axes;
    return { row, col, rows: items.shape[row], cols: items.shape[col] };
  }

  show() {
    const { rows, cols } = this.#axes;
    if (this.app.state.tableAt) [this.top, this.left] = this.app.state.tableAt;
    document.querySelector('#column-label').hidden = cols < 2;
    const lines = this.#visibleRows;
    this.space.style.height = `${Math.min(MAX_LENGTH, (rows + 1) * ROW)}px`;
    this.space.style.width = `${Math.min(MAX_LENGTH, cols > 1 ? (cols + 1) * this.column : 1)}px`;
    this.window.style.width = `${this.scroller.clientWidth}px`;
    this.window.style.height = `${this.scroller.clientHeight}px`;
    this.top = Math.min(Math.max(0, this.top), Math.max(0, rows - lines));
    this.left = Math.min(Math.max(0, this.left), Math.max(0, cols - 1));
    this.#moveBy(0, 0);
    if (this.app.items.columns) this.app.columns.show();
  }

  #scrolled() {
    // Our own position of the scroll bar is not a request.
    if (this.ignored === `${Math.round(this.scroller.scrollTop)},${Math.round(this.scroller.scrollLeft)}`) return;
    const { rows, cols } = this.#axes;
    const part = (at, length, view) => (length > view ? at / (length - view) : 0);
    const { scrollTop, scrollLeft, scrollHeight, scrollWidth, clientHeight, clientWidth } = this.scroller;
    this.top = part(scrollTop, scrollHeight, clientHeight) * Math.max(0, rows - this.#visibleRows);
    this.left = part(scrollLeft, scrollWidth, clientWidth) * Math.max(0, cols - 1);
    this.#moved();
  }

  #moveBy(rows, cols) {
    const all = this.#axes;
    const most = Math.max(0, all.rows - this.#visibleRows);
    this.top = Math.min(Math.max(0, this.top + rows), most);
    this.left = Math.min(Math.max(0, this.left + cols), Math.max(0, all.cols - 1));
    const { scrollHeight, scrollWidth, clientHeight, clientWidth } = this.scroller;
    const place = (at, most, length) => (most > 0 ? Math.round(at / most * length) : 0);
    this.scroller.scrollTop = place(this.top, most, scrollHeight - clientHeight);
    this.scroller.scrollLeft = place(this.left, all.cols - 1, scrollWidth - clientWidth);
    this.ignored = `${Math.round(this.scroller.scrollTop)},${Math.round(this.scroller.scrollLeft)}`;
    this.#moved();
  }

  #moved() {
    this.app.state.tableAt = [Math.floor(this.top), Math.floor(this.left)];
    this.scroller.dataset.done = false;
    this.read();
    this.app.save();
  }

  /** The visible ranges of rows and columns. */
  visible() {
    const { rows, cols } = this.#axes;
    const [top, left] = [Math.floor(this.top), Math.floor(this.left)];
    return [[top, Math.min(rows, top + this.#visibleRows)], [left, Math.min(cols, left + this.#visibleColumns)]];
  }

  async #read() {
    if (this.app.state.view !== 'table' || !this.scroller.clientHeight) return;
    // One request at a time: while it runs, only the newest position counts.
    if (this.reading) { this.again = true; return; }
    this.reading = true;
    const { row, col, fields } = this.#axes;
    const [rows, cols] = this.visible();
    const ranges = this.app.state.at.map((index, axis) =>
      axis === row ? rows : axis === col ? cols : [index, index + 1]);
    try {
      const cells = await this.app.client.call('cells', { request: { ranges, fields: Boolean(fields) } });
      this.#fill(cells, rows, cols);
    } catch (error) {
      this.app.fail(error);
    }
    this.reading = false;
    if (this.again) { this.again = false; this.read(); }
  }

  /** The title of a column; that of a column of a table chooses it for the statistics. */
  #title(k) {
    const { col, fields } = this.#axes;
    if (!fields) return col === undefined ? 'value' : String(k);
    const column = this.app.items.columns?.[k];
    if (!column || column.kind === 'any') return fields[k];
    const button = element('button', { type: 'button', title: `${column.kind}: show its statistics` }, column.name);
    button.addEventListener('click', () => this.app.columns.choose(column.name));
    return button;
  }

  #fill(cells, rows, cols) {
    const { row, col, fields } = this.#axes;
    const corner = element('th', { scope: 'col' }, row === undefined ? '' : col === undefined ? 'index' : `axis ${row} \\ ${col}`);
    const names = [];
    for (let k = cols[0]; k < cols[1]; k += 1) {
      const isChosen = fields && this.app.columns.shown === fields[k];
      names.push(element('th', { scope: 'col', ...(isChosen ? { 'aria-current': 'true' } : {}) }, this.#title(k)));
    }
    this.table.tHead.replaceChildren(element('tr', {}, corner, ...names));
    const width = cols[1] - cols[0];
    // The cells are in the order of the axes of the array.
    const turned = col !== undefined && col < row;
    const height = rows[1] - rows[0];
    const lines = [];
    for (let k = 0; k < height; k += 1) {
      const texts = [];
      for (let l = 0; l < width; l += 1) {
        texts.push(fields ? cells[k][cols[0] + l] : turned ? cells[l * height + k] : cells[k * width + l]);
      }
      const isMarked = (l) => this.marked && this.marked[0] === rows[0] + k && (fields || this.marked[1] === cols[0] + l);
      const classes = (text, l) => [['nan', 'NaT', 'None'].includes(text) ? 'nan' : '', isMarked(l) ? 'marked' : ''].join(' ').trim();
      const line = texts.map((text, l) => element('td', { title: text.length > 24 ? text : '', className: classes(text, l) }, text));
      lines.push(element('tr', {}, element('th', { scope: 'row' }, row === undefined ? '' : String(rows[0] + k)), ...line));
    }
    this.table.tBodies[0].replaceChildren(...lines);
    // More columns fit if they are narrow.
    const column = Math.min(Math.max(this.table.clientWidth / (width + 1), 40), 400);
    if (Math.abs(column - this.column) > 4 && cols[1] < this.#axes.cols) this.read();
    this.column = column;
    for (const [id, at] of [['row', rows[0]], ['column', cols[0]]]) {
      const input = document.querySelector(`#${id}`);
      if (document.activeElement !== input) input.value = at;
    }
    this.scroller.dataset.done = !this.again;
  }
}
