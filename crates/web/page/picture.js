// The picture of a plane: zoom, pan, a marked item.

import { colour, eachFrame, element, hatch, prepared, short } from './text.js';

const MAX_SCALE = 64;

export class Picture {
  /** `app` has `state`, `items`, `client`, and is told about what changes. */
  constructor(app) {
    this.app = app;
    this.canvas = document.querySelector('#picture');
    this.image = undefined;
    this.mark = undefined;
    this.draw = eachFrame(() => this.#draw());
    this.read = eachFrame(() => this.#read());
    new ResizeObserver(() => { this.#resized(); }).observe(this.canvas);
    this.#listen();
  }

  /** Forgets the picture of another file. */
  reset() {
    this.image = undefined;
    this.mark = undefined;
    this.window = undefined;
  }

  get #shape() {
    const { axes } = this.app.state;
    return [this.app.items.shape[axes[0]], this.app.items.shape[axes[1]]];
  }

  /** Shows the complete plane. */
  fit() {
    const [rows, cols] = this.#shape;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width) return;
    let [y, x] = [height / Math.max(rows, 1), width / Math.max(cols, 1)];
    if (this.app.state.square) y = x = Math.min(x, y);
    this.window = {
      scale: [Math.min(y, MAX_SCALE), Math.min(x, MAX_SCALE)],
      center: [rows / 2, cols / 2],
    };
    this.changed();
  }

  changed() {
    // One finger then moves the page, because all of the picture is visible.
    this.#endScan();
    this.canvas.dataset.fit = this.#isComplete(0) && this.#isComplete(1);
    this.app.state.center = this.window.center;
    this.app.state.scale = this.window.scale;
    this.draw();
    this.canvas.dataset.done = false;
    this.read();
    this.app.save();
  }

  /** Shows the plane of the state. */
  show() {
    if (!this.canvas.clientWidth) return;
    const { center, scale } = this.app.state;
    if (center && scale) {
      this.window = { center, scale };
      this.changed();
    } else {
      this.fit();
    }
  }

  #resized() {
    if (!this.canvas.clientWidth || !this.app.items?.shape || this.app.state.view !== 'picture') return;
    this.#endScan();
    this.draw();
    this.read();
  }

  /** The position of an index on the screen: row and column. */
  #toScreen(row, col) {
    const { center, scale } = this.window;
    return [
      (row - center[0]) * scale[0] + this.canvas.clientHeight / 2,
      (col - center[1]) * scale[1] + this.canvas.clientWidth / 2,
    ];
  }

  #toIndex(y, x) {
    const { center, scale } = this.window;
    return [
      (y - this.canvas.clientHeight / 2) / scale[0] + center[0],
      (x - this.canvas.clientWidth / 2) / scale[1] + center[1],
    ];
  }

  /** The visible ranges of rows and of columns. */
  visible() {
    const shape = this.#shape;
    const from = this.#toIndex(0, 0);
    const to = this.#toIndex(this.canvas.clientHeight, this.canvas.clientWidth);
    const range = (k) => {
      const start = Math.min(Math.max(0, Math.floor(from[k])), shape[k]);
      return [start, Math.max(start, Math.min(shape[k], Math.ceil(to[k])))];
    };
    return [range(0), range(1)];
  }

  zoom(factor, y = this.canvas.clientHeight / 2, x = this.canvas.clientWidth / 2) {
    if (!this.window) return;
    const before = this.#toIndex(y, x);
    const shape = this.#shape;
    const least = [0.5 * this.canvas.clientHeight / shape[0], 0.5 * this.canvas.clientWidth / shape[1]];
    if (this.app.state.square) least[0] = least[1] = Math.min(...least);
    this.window.scale = this.window.scale.map((scale, k) =>
      Math.min(Math.max(scale * factor, Math.min(least[k], MAX_SCALE)), MAX_SCALE));
    const after = this.#toIndex(y, x);
    this.window.center = this.window.center.map((center, k) => center + before[k] - after[k]);
    this.#clamp();
    this.changed();
  }

  pan(y, x) {
    if (!this.window) return;
    const { center, scale } = this.window;
    this.window.center = [center[0] - y / scale[0], center[1] - x / scale[1]];
    this.#clamp();
    this.changed();
  }

  /** Whether all indices of the rows, or of the columns, fit on the screen. */
  #isComplete(k) {
    return this.#shape[k] * this.window.scale[k] <= [this.canvas.clientHeight, this.canvas.clientWidth][k] + 0.5;
  }

  #clamp() {
    const shape = this.#shape;
    this.window.center = this.window.center.map((center, k) =>
      (this.#isComplete(k) ? shape[k] / 2 : Math.min(Math.max(center, 0), shape[k])));
  }

  #read(budget) {
    if (!this.window || this.app.state.view !== 'picture') return;
    const ratio = window.devicePixelRatio || 1;
    const steps = this.window.scale.map((scale) => 2 ** Math.max(0, Math.floor(Math.log2(1 / (scale * ratio)))));
    const [rows, cols] = this.visible();
    const { axes, at, field } = this.app.state;
    const request = { axes, at, field, rows, cols, steps };
    this.app.run('picture', { request, colours: this.app.colours(), budget: budget ?? this.app.budget() }, (answer) => this.#receive(answer));
  }

  /** Computes the statistics of all visible items; those of the picture are of its pixels. */
  scan(ranges) {
    this.app.run('scan', { request: { ranges, field: this.app.state.field } }, (answer) => {
      this.scanned = answer.statistics;
      this.app.showStatistics(answer.statistics, answer.done ? 'readable' : 'sample');
    });
  }

  /** The visible items have changed. */
  #endScan() {
    this.scanned = undefined;
    this.app.cancel('scan');
  }

  /** Reads all blocks of what is visible. */
  readAll() {
    this.#read(Infinity);
  }

  #receive(answer) {
    const { facts, pixels, low, high, statistics } = answer;
    if (facts.width > 0 && facts.height > 0) {
      const image = new ImageData(new Uint8ClampedArray(pixels.buffer), facts.width, facts.height);
      const canvas = this.image?.canvas ?? element('canvas');
      canvas.width = facts.width;
      canvas.height = facts.height;
      canvas.getContext('2d').putImageData(image, 0, 0);
      this.image = { canvas, facts };
    }
    this.app.showLegend(low, high, facts.unreadable.length > 0);
    const isWhole = facts.rowStep === 1 && facts.colStep === 1 && facts.done + facts.unreadable.length === facts.blocks;
    if (!this.scanned) this.app.showStatistics(statistics, isWhole ? 'readable' : 'sample', answer.done && !isWhole);
    const [rows, cols] = this.visible();
    this.canvas.setAttribute('aria-label', `Picture of the rows ${rows[0]} to ${rows[1]} and the columns ${cols[0]} to `
      + `${cols[1]}, values from ${short(statistics.min)} to ${short(statistics.max)}`);
    this.canvas.dataset.done = answer.done;
    this.draw();
  }

  #draw() {
    const { context, width, height } = prepared(this.canvas);
    if (!this.window) return;
    context.imageSmoothingEnabled = false;
    if (this.image) {
      const { facts, canvas } = this.image;
      const [top, left] = this.#toScreen(facts.row, facts.col);
      const [bottom, right] = this.#toScreen(facts.row + facts.height * facts.rowStep, facts.col + facts.width * facts.colStep);
      // The last pixels can stand for indices beyond the end of an axis.
      const [y, x] = this.#toScreen(0, 0);
      const [yEnd, xEnd] = this.#toScreen(...this.#shape);
      context.save();
      context.beginPath();
      context.rect(x, y, xEnd - x, yEnd - y);
      context.clip();
      context.drawImage(canvas, left, top, right - left, bottom - top);
      for (const { rows, cols } of facts.unreadable) {
        const [y, x] = this.#toScreen(facts.row + rows[0] * facts.rowStep, facts.col + cols[0] * facts.colStep);
        hatch(context, x, y, cols[1] * facts.colStep * this.window.scale[1], rows[1] * facts.rowStep * this.window.scale[0]);
      }
      context.restore();
    }
    this.#drawEdges(context, width, height);
    if (this.mark) {
      const [top, left] = this.#toScreen(...this.mark);
      const [bottom, right] = this.#toScreen(this.mark[0] + 1, this.mark[1] + 1);
      const grow = Math.max(0, (8 - (right - left)) / 2);
      context.lineWidth = 3;
      context.strokeStyle = '#000';
      context.strokeRect(left - grow, top - grow, right - left + 2 * grow, bottom - top + 2 * grow);
      context.lineWidth = 1.5;
      context.strokeStyle = '#fff';
      context.strokeRect(left - grow, top - grow, right - left + 2 * grow, bottom - top + 2 * grow);
    }
  }

  /** Draws the first and the last visible index of both axes. */
  #drawEdges(context, width, height) {
    const [rows, cols] = this.visible();
    context.font = '11px ui-monospace, "DejaVu Sans Mono", monospace';
    const label = (text, x, y, isRight, isBottom) => {
      const room = context.measureText(text).width + 10;
      const left = isRight ? Math.min(x, width) - room : Math.max(x, 0);
      const top = isBottom ? Math.min(y, height) - 17 : Math.max(y, 0);
      context.globalAlpha = 0.82;
      context.fillStyle = colour('card');
      context.fillRect(left, top, room, 17);
      context.globalAlpha = 1;
      context.fillStyle = colour('text');
      context.textBaseline = 'middle';
      context.fillText(text, left + 5, top + 9);
    };
    const [top, left] = this.#toScreen(rows[0], cols[0]);
    const [bottom, right] = this.#toScreen(rows[1], cols[1]);
    const [r, c] = this.app.state.axes;
    label(`axis ${r}: ${rows[0]}`, left, top, false, false);
    if (bottom - top > 60) label(String(rows[1] - 1), left, bottom, false, true);
    if (right - left > 240) label(`axis ${c}: ${cols[0]} to ${cols[1] - 1}`, right, bottom, true, true);
  }

  /** Marks an item; if it is not visible, moves it to the middle. */
  goTo(at) {
    const [row, col] = this.app.state.axes.map((axis) => at[axis]);
    if (!this.window) return;
    const isVisible = this.visible().every(([start, end], k) => [row, col][k] >= start && [row, col][k] < end);
    if (!isVisible) this.window.center = [row + 0.5, col + 0.5];
    this.mark = [row, col];
    this.changed();
  }

  /** Marks an item and shows its value. */
  point(row, col) {
    const shape = this.#shape;
    if (row < 0 || col < 0 || row >= shape[0] || col >= shape[1]) return;
    this.mark = [row, col];
    const at = [...this.app.state.at];
    at[this.app.state.axes[0]] = row;
    at[this.app.state.axes[1]] = col;
    this.app.showValue(at);
    this.draw();
  }

  #listen() {
    const { canvas } = this;
    const pointers = new Map();
    let moved = 0;
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, event);
      moved = 0;
    });
    const end = (event) => pointers.delete(event.pointerId);
    // A tap; a mouse has pointed already.
    canvas.addEventListener('pointerup', (event) => {
      if (this.window && pointers.size === 1 && moved <= 3) this.point(...this.#toIndex(event.offsetY, event.offsetX).map(Math.floor));
      end(event);
    });
    // Two fingers zoom, they do not move the page.
    canvas.addEventListener('touchstart', (event) => { if (event.touches.length > 1) event.preventDefault(); }, { passive: false });
    canvas.addEventListener('pointercancel', end);
    canvas.addEventListener('pointermove', (event) => {
      if (!this.window) return;
      const before = pointers.get(event.pointerId);
      if (before && pointers.size === 2) {
        const other = [...pointers.values()].find((each) => each.pointerId !== event.pointerId);
        const distance = (a) => Math.hypot(a.offsetX - other.offsetX, a.offsetY - other.offsetY);
        const factor = distance(event) / Math.max(1, distance(before));
        this.zoom(factor, (event.offsetY + other.offsetY) / 2, (event.offsetX + other.offsetX) / 2);
      } else if (before) {
        moved += Math.abs(event.offsetX - before.offsetX) + Math.abs(event.offsetY - before.offsetY);
        if (moved > 3) this.pan(event.offsetY - before.offsetY, event.offsetX - before.offsetX);
      }
      if (before) pointers.set(event.pointerId, event);
      if (!before || moved <= 3) this.point(...this.#toIndex(event.offsetY, event.offsetX).map(Math.floor));
    });
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.zoom(1.0015 ** -event.deltaY, event.offsetY, event.offsetX);
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      const step = steps[event.key];
      if (step && event.shiftKey) this.pan(-step[0] * 60, -step[1] * 60);
      else if (step) this.#moveMark(step);
      else if (event.key === '+' || event.key === '=') this.zoom(1.5);
      else if (event.key === '-') this.zoom(1 / 1.5);
      else if (event.key === '0') this.fit();
      else return;
      event.preventDefault();
    });
  }

  #moveMark(step) {
    if (!this.window) return;
    const shape = this.#shape;
    const center = this.window.center.map((center, k) => Math.min(Math.floor(center), shape[k] - 1));
    const from = this.mark ?? center.map((at, k) => at - step[k]);
    // A step is at least one pixel.
    const next = from.map((at, k) => at + step[k] * Math.max(1, Math.round(1 / this.window.scale[k])));
    const [row, col] = next.map((at, k) => Math.min(Math.max(at, 0), shape[k] - 1));
    const [y, x] = this.#toScreen(row + 0.5, col + 0.5);
    const over = (at, size) => (at < 0 ? -at + 20 : at > size ? size - at - 20 : 0);
    const [dy, dx] = [over(y, this.canvas.clientHeight), over(x, this.canvas.clientWidth)];
    if (dy || dx) this.pan(dy, dx);
    this.point(row, col);
  }

  /** Returns the visible part as a PNG file. */
  async png() {
    const { canvas, facts } = this.image;
    const [rows, cols] = this.visible();
    const out = element('canvas');
    const part = (range, start, step, size) => {
      const from = Math.max(0, Math.floor((range[0] - start) / step));
      return [from, Math.min(size, Math.ceil((range[1] - start) / step)) - from];
    };
    const [y, height] = part(rows, facts.row, facts.rowStep, facts.height);
    const [x, width] = part(cols, facts.col, facts.colStep, facts.width);
    out.width = width;
    out.height = height;
    const context = out.getContext('2d');
    context.drawImage(canvas, x, y, width, height, 0, 0, width, height);
    for (const { rows, cols } of facts.unreadable) hatch(context, cols[0] - x, rows[0] - y, cols[1], rows[1]);
    return new Promise((resolve) => { out.toBlob(resolve, 'image/png'); });
  }
}
