// The line plot of an axis.

import { colour, eachFrame, hatch, prepared, short } from './text.js';

const MARGIN = { left: 72, right: 14, top: 12, bottom: 30 };
/** The least number of items that fill the plot. */
const MIN_ITEMS = 4;

export class Plot {
  constructor(app) {
    this.app = app;
    this.canvas = document.querySelector('#plot');
    this.answer = undefined;
    this.mark = undefined;
    this.draw = eachFrame(() => this.#draw());
    this.read = eachFrame(() => this.#read());
    new ResizeObserver(() => {
      if (this.canvas.clientWidth && this.app.state.view === 'plot') { this.draw(); this.read(); }
    }).observe(this.canvas);
    this.#listen();
  }

  reset() {
    this.answer = undefined;
    this.mark = undefined;
  }

  get #size() {
    return this.app.items.shape[this.app.state.axis];
  }

  get #width() {
    return Math.max(1, this.canvas.clientWidth - MARGIN.left - MARGIN.right);
  }

  get #window() {
    return this.app.state.span ?? [0, this.#size];
  }

  visible() {
    const [start, end] = this.#window;
    const from = Math.min(Math.max(0, Math.floor(start)), this.#size);
    return [from, Math.max(from, Math.min(this.#size, Math.ceil(end)))];
  }

  fit() {
    this.app.state.span = undefined;
    this.changed();
  }

  changed() {
    this.draw();
    this.canvas.dataset.done = false;
    this.read();
    this.app.save();
  }

  show() {
    this.changed();
  }

  #setWindow(start, end) {
    const length = Math.min(Math.max(end - start, Math.min(MIN_ITEMS, this.#size)), this.#size);
    const from = Math.min(Math.max(0, start), this.#size - length);
    this.app.state.span = length >= this.#size ? undefined : [from, from + length];
    this.changed();
  }

  zoom(factor, x = MARGIN.left + this.#width / 2) {
    const [start, end] = this.#window;
    const part = Math.min(Math.max((x - MARGIN.left) / this.#width, 0), 1);
    const at = start + part * (end - start);
    const length = (end - start) / factor;
    this.#setWindow(at - part * length, at + (1 - part) * length);
  }

  pan(x) {
    const [start, end] = this.#window;
    const step = -x / this.#width * (end - start);
    this.#setWindow(start + step, end + step);
  }

  #read(budget) {
    if (!this.canvas.clientWidth || this.app.state.view !== 'plot') return;
    const { at, axis, field } = this.app.state;
    const width = Math.round(this.#width * (window.devicePixelRatio || 1));
    const request = { axes: [axis], at, field, range: this.visible(), width };
    this.app.run('plot', { request, budget: budget ?? this.app.budget() }, (answer) => {
      this.answer = answer;
      const { facts } = answer;
      this.app.showStatistics(answer.statistics, facts.done + facts.unreadable.length === facts.blocks ? 'readable' : 'sample');
      this.canvas.dataset.done = answer.done;
      const { min, max } = answer.statistics;
      this.canvas.setAttribute('aria-label',
        `Plot of the items ${answer.facts.start} to ${answer.facts.end}, values from ${short(min)} to ${short(max)}`);
      this.draw();
    });
  }

  readAll() {
    this.#read(Infinity);
  }

  /** The range of the values, with some room. */
  #range(log) {
    const { min, max, positive } = this.answer?.statistics ?? {};
    if (min === undefined) return [0, 1];
    if (log) {
      const low = Math.log10(min > 0 ? min : positive ?? 1);
      const high = Math.log10(max > 0 ? max : 1);
      return high > low ? [low, high] : [low - 0.5, low + 0.5];
    }
    const room = max > min ? (max - min) * 0.04 : Math.abs(max) * 0.1 || 1;
    return [min - room, max + room];
  }

  #draw() {
    const { context, width, height } = prepared(this.canvas);
    const log = this.app.state.plotLog;
    const [low, high] = this.#range(log);
    const [start, end] = this.#window;
    const right = width - MARGIN.right;
    const bottom = height - MARGIN.bottom;
    const x = (item) => MARGIN.left + (item - start) / (end - start) * this.#width;
    const y = (value) => {
      const place = log ? Math.log10(Math.max(value, Number.MIN_VALUE)) : value;
      return bottom - (Math.max(place, low) - low) / (high - low) * (bottom - MARGIN.top);
    };
    context.font = '11px ui-monospace, "DejaVu Sans Mono", monospace';
    context.lineWidth = 1;
    const grid = (at, isRow, text) => {
      context.strokeStyle = colour('line');
      context.beginPath();
      if (isRow) { context.moveTo(MARGIN.left, at); context.lineTo(right, at); }
      else { context.moveTo(at, MARGIN.top); context.lineTo(at, bottom); }
      context.stroke();
      context.fillStyle = colour('quiet');
      context.textAlign = isRow ? 'right' : 'center';
      context.textBaseline = isRow ? 'middle' : 'top';
      const half = context.measureText(text).width / 2;
      context.fillText(text, isRow ? MARGIN.left - 8 : Math.min(at, width - half - 2), isRow ? at : bottom + 8);
    };
    for (const value of ticks(low, high, 6)) {
      const at = bottom - (value - low) / (high - low) * (bottom - MARGIN.top);
      grid(Math.round(at) + 0.5, true, log ? short(10 ** value) : short(value));
    }
    for (const item of ticks(start, end, width / 110)) if (Number.isInteger(item)) grid(Math.round(x(item)) + 0.5, false, short(item));
    if (!this.answer) return;
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, 0, this.#width, height);
    context.clip();
    this.#drawLine(context, x, y);
    for (const { items: [from, to] } of this.answer.facts.unreadable) {
      const wide = x(to) - x(from);
      if (wide >= 7) {
        hatch(context, x(from), MARGIN.top, wide, bottom - MARGIN.top);
      } else {
        // Too narrow for stripes.
        context.fillStyle = colour('bad');
        context.fillRect(Math.floor(x(from)), MARGIN.top, Math.max(wide, 2), bottom - MARGIN.top);
      }
    }
    context.restore();
    if (this.mark !== undefined && this.mark >= start && this.mark <= end) {
      context.strokeStyle = colour('nan');
      context.beginPath();
      context.moveTo(x(this.mark + 0.5), MARGIN.top);
      context.lineTo(x(this.mark + 0.5), bottom);
      context.stroke();
    }
  }

  #drawLine(context, x, y) {
    const { facts, columns } = this.answer;
    const step = (facts.end - facts.start) / facts.width;
    context.strokeStyle = context.fillStyle = colour('accent');
    context.lineWidth = 1.25;
    context.lineJoin = 'round';
    context.beginPath();
    let before;
    for (let k = 0; k < facts.width; k += 1) {
      const [least, greatest] = [columns[2 * k], columns[2 * k + 1]];
      if (Number.isNaN(least)) { before = undefined; continue; }
      const at = x(facts.start + (k + 0.5) * step);
      // From the end that is closer to the last column, so that the line does not go back and forth.
      const first = before !== undefined && Math.abs(before - greatest) < Math.abs(before - least) ? greatest : least;
      const last = first === least ? greatest : least;
      if (before === undefined) context.moveTo(at, y(first)); else context.lineTo(at, y(first));
      context.lineTo(at, y(last));
      before = last;
    }
    context.stroke();
    // Single items.
    const distance = x(1) - x(0);
    if (step === 1 && distance > 7) {
      for (let k = 0; k < facts.width; k += 1) {
        if (Number.isNaN(columns[2 * k])) continue;
        context.beginPath();
        context.arc(x(facts.start + k + 0.5), y(columns[2 * k]), Math.min(3.5, distance / 4), 0, 7);
        context.fill();
      }
    }
  }

  /** Marks an item; if it is not visible, moves it to the middle. */
  goTo(at) {
    this.mark = at[this.app.state.axis];
    const [start, end] = this.#window;
    const half = (end - start) / 2;
    if (this.mark < start || this.mark >= end) this.#setWindow(this.mark - half, this.mark + half);
    else this.changed();
  }

  point(item) {
    if (item < 0 || item >= this.#size) return;
    this.mark = item;
    const at = [...this.app.state.at];
    at[this.app.state.axis] = item;
    this.app.showValue(at);
    this.draw();
  }

  #itemAt(x) {
    const [start, end] = this.#window;
    return Math.floor(start + (x - MARGIN.left) / this.#width * (end - start));
  }

  #listen() {
    const { canvas } = this;
    let last;
    let moved = 0;
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      last = event.offsetX;
      moved = 0;
    });
    canvas.addEventListener('pointerup', (event) => {
      // A tap; a mouse has pointed already.
      if (moved <= 3) this.point(this.#itemAt(event.offsetX));
      last = undefined;
    });
    canvas.addEventListener('pointercancel', () => { last = undefined; });
    canvas.addEventListener('pointermove', (event) => {
      if (last !== undefined) {
        moved += Math.abs(event.offsetX - last);
        if (moved > 3) this.pan(event.offsetX - last);
        last = event.offsetX;
      }
      if (last === undefined || moved <= 3) this.point(this.#itemAt(event.offsetX));
    });
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.zoom(1.0015 ** -event.deltaY, event.offsetX);
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step && event.shiftKey) this.pan(-step * 60);
      else if (step) {
        const [start, end] = this.#window;
        const least = Math.max(1, Math.round((end - start) / this.#width));
        const next = this.mark === undefined ? Math.floor((start + end) / 2) : this.mark + step * least;
        this.point(Math.min(Math.max(next, 0), this.#size - 1));
      } else if (event.key === '+' || event.key === '=') this.zoom(1.5);
      else if (event.key === '-') this.zoom(1 / 1.5);
      else if (event.key === '0') this.fit();
      else return;
      event.preventDefault();
    });
  }

  async png() {
    return new Promise((resolve) => { this.canvas.toBlob(resolve, 'image/png'); });
  }
}

/** About `count` round numbers in a range. */
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough) ?? 10 * power;
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high && found.length < 100; k += 1) found.push(Number((k * step).toPrecision(12)));
  return found;
}
