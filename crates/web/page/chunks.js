// The map of the chunks.

import { colour, define, eachFrame, hatch, plain, prepared, size } from './text.js';

/** The least side of a cell, in pixels. */
const MIN_CELL = 3;
const MAX_CELL = 72;

export class Chunks {
  constructor(app) {
    this.app = app;
    this.canvas = document.querySelector('#chunks');
    this.draw = eachFrame(() => this.#draw());
    new ResizeObserver(() => { if (this.sizes && this.canvas.clientWidth) this.draw(); }).observe(this.canvas);
    this.canvas.addEventListener('pointermove', (event) => this.#say(this.#chunkAt(event)));
    this.canvas.addEventListener('click', (event) => this.choose(this.#chunkAt(event)));
    this.canvas.addEventListener('keydown', (event) => {
      const cols = this.layout?.cols ?? 1;
      const per = this.layout?.per ?? 1;
      const step = { ArrowLeft: -per, ArrowRight: per, ArrowUp: -cols * per, ArrowDown: cols * per }[event.key];
      if (!step || !this.sizes) return;
      event.preventDefault();
      const next = (this.chosen ?? -step) + step;
      if (next >= 0 && next < this.sizes.length) this.choose(next);
    });
  }

  reset() {
    this.sizes = undefined;
    this.chosen = undefined;
    document.querySelector('#chunk-facts').replaceChildren();
  }

  show() {
    if (this.sizes) return this.draw();
    this.app.run('map', {}, (answer) => {
      if (!answer.done) return;
      this.sizes = answer.sizes;
      const ratios = this.#ratios().filter((ratio) => Number.isFinite(ratio));
      this.range = ratios.length ? ratios.reduce(([low, high], ratio) => [Math.min(low, ratio), Math.max(high, ratio)], [Infinity, 0]) : [1, 1];
      document.querySelector('#chunk-low').value = `${this.range[0].toFixed(2)}×`;
      document.querySelector('#chunk-high').value = `${this.range[1].toFixed(2)}×`;
      this.app.paintBar('#chunk-bar', 'ocean');
      this.draw();
      if (this.app.state.chunk !== undefined) this.choose(this.app.state.chunk);
    });
  }

  #ratios() {
    const bytes = this.app.items.chunkBytes;
    return Array.from(this.sizes, (stored) => bytes / stored);
  }

  /** Cells in rows: a row of the grid of the array if this fits, otherwise any number. */
  #place(width, height) {
    const count = this.sizes.length;
    const grid = this.app.items.grid;
    const row = grid.length > 1 ? grid[grid.length - 1] : 0;
    let per = 1;
    let cols = row;
    let cell = Math.min(MAX_CELL, Math.floor(Math.min(width / row, height / Math.ceil(count / row))));
    if (!row || cell < MIN_CELL) {
      cell = Math.max(MIN_CELL, Math.min(MAX_CELL, Math.floor(Math.sqrt(width * height / count))));
      cols = Math.max(1, Math.floor(width / cell));
      while (cell > MIN_CELL && Math.ceil(count / cols) * cell > height) {
        cell -= 1;
        cols = Math.max(1, Math.floor(width / cell));
      }
      per = Math.max(1, Math.ceil(count / (cols * Math.max(1, Math.floor(height / cell)))));
    }
    this.layout = { cell, cols, per };
    return this.layout;
  }

  #draw() {
    const { context, width, height } = prepared(this.canvas);
    if (!this.sizes || !this.map) { this.#loadMap(); return; }
    const { cell, cols, per } = this.#place(width, height);
    const bytes = this.app.items.chunkBytes;
    const [low, high] = this.range.map(Math.log);
    const gap = cell > 6 ? 1 : 0;
    for (let at = 0; at * per < this.sizes.length; at += 1) {
      let stored = 0;
      const end = Math.min(this.sizes.length, (at + 1) * per);
      for (let chunk = at * per; chunk < end; chunk += 1) stored += this.sizes[chunk];
      const ratio = bytes * (end - at * per) / stored;
      if (stored === 0) {
        context.fillStyle = colour('line');
      } else {
        const part = high > low ? (Math.log(ratio) - low) / (high - low) : 0.5;
        const index = 4 * Math.min(255, Math.max(0, Math.round(part * 255)));
        context.fillStyle = `rgb(${this.map[index]} ${this.map[index + 1]} ${this.map[index + 2]})`;
      }
      context.fillRect(at % cols * cell, Math.floor(at / cols) * cell, cell - gap, cell - gap);
    }
    const damaged = [...this.app.damaged()].sort((a, b) => a - b);
    for (const chunk of damaged) {
      const at = Math.floor(chunk / per);
      hatch(context, at % cols * cell, Math.floor(at / cols) * cell, cell - gap, cell - gap);
    }
    const text = damaged.length ? `Striped: cannot be read, chunk ${damaged.slice(0, 10).join(', ')}${damaged.length > 10 ? ' …' : ''}` : '';
    document.querySelector('#damaged').textContent = text;
    if (this.chosen !== undefined) {
      const at = Math.floor(this.chosen / per);
      context.lineWidth = 2;
      context.strokeStyle = colour('nan');
      context.strokeRect(at % cols * cell - 1, Math.floor(at / cols) * cell - 1, cell + 1, cell + 1);
    }
    this.canvas.dataset.done = 'true';
  }

  async #loadMap() {
    if (!this.sizes) return;
    this.map = await this.app.client.call('colours', { map: 'ocean' });
    this.draw();
  }

  #chunkAt(event) {
    if (!this.layout || !this.sizes) return undefined;
    const { cell, cols, per } = this.layout;
    const col = Math.floor(event.offsetX / cell);
    const chunk = (Math.floor(event.offsetY / cell) * cols + col) * per;
    return col < cols && chunk < this.sizes.length ? chunk : undefined;
  }

  #say(chunk) {
    if (chunk === undefined || !this.sizes) return;
    const stored = this.sizes[chunk];
    const ratio = stored ? `${(this.app.items.chunkBytes / stored).toFixed(2)}×` : 'a special value, not stored';
    this.app.say(`chunk ${chunk}: ${stored ? `${size(stored)}, ` : ''}${ratio}${this.app.damaged().has(chunk) ? '; it cannot be read' : ''}`);
  }

  /** Shows the facts about a chunk. */
  async choose(chunk) {
    if (chunk === undefined) return;
    this.chosen = chunk;
    this.app.state.chunk = chunk;
    this.app.save();
    this.#say(chunk);
    this.draw();
    const list = document.querySelector('#chunk-facts');
    try {
      const facts = await this.app.client.call('chunk', { chunk });
      if (this.chosen !== chunk) return;
      const entries = Object.entries(facts).map(([name, value]) => [name, name === 'items'
        ? value.map(([start, end]) => `${start}:${end}`).join(', ')
        : name.endsWith('bytes') || name === 'blocksize' ? size(value) : plain(value)]);
      define(list, entries);
    } catch (error) {
      define(list, [['chunk', String(chunk)], ['error', error.message]]);
    }
  }
}
