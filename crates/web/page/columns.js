// Statistics of a column of a table.

import { element } from './text.js';

export class Columns {
  constructor(app) {
    this.app = app;
    this.select = document.querySelector('#column-choice');
    this.select.addEventListener('change', () => this.choose(this.select.value));
  }

  /** The columns that have statistics. */
  get #numbers() {
    return (this.app.items.columns ?? []).filter(({ number }) => number);
  }

  /** Lists the columns of another table. */
  reset() {
    this.shown = undefined;
    const columns = this.app.items?.columns ?? [];
    this.select.replaceChildren(...columns.map(({ name, kind }) => element('option', { value: name }, `${name} (${kind})`)));
  }

  /** Shows the statistics of the chosen column, or of the first one of numbers. */
  show() {
    const { columns } = this.app.items;
    if (!columns?.length) return;
    const name = columns.find((each) => each.name === this.app.state.column)?.name ?? this.#numbers[0]?.name ?? columns[0].name;
    this.select.value = name;
    if (this.shown !== name) this.choose(name);
  }

  /** The view is left: what is not read completely is read again later. */
  pause() {
    if (document.querySelector('#summary').dataset.done !== 'true') this.shown = undefined;
  }

  choose(name) {
    const column = this.app.items.columns.find((each) => each.name === name);
    if (!column) return;
    this.app.state.column = this.shown = name;
    this.select.value = name;
    document.querySelector('#column-npy').disabled = !column.items;
    for (const title of document.querySelectorAll('#table th[scope=col]')) {
      if (title.textContent === name) title.setAttribute('aria-current', 'true'); else title.removeAttribute('aria-current');
    }
    this.app.save();
    this.#read();
  }

  readAll() {
    this.#read(Infinity);
  }

  #read(budget) {
    const summary = document.querySelector('#summary');
    const column = this.app.items.columns.find((each) => each.name === this.shown);
    if (!column.number) {
      this.app.client.cancel('column');
      this.app.showStatistics();
      document.querySelector('#statistics').replaceChildren(element('dt', {}, 'type'),
        element('dd', {}, `${column.kind}: statistics are computed of numbers, booleans and times`));
      summary.dataset.done = 'true';
      return;
    }
    summary.dataset.done = 'false';
    this.app.showStatistics();
    document.querySelector('#statistics').replaceChildren(element('dt', {}, 'rows'), element('dd', {}, 'being read …'));
    const content = { request: { name: column.name }, budget: budget ?? this.app.budget() };
    this.app.run('column', content, (answer) => {
      this.app.showStatistics(answer.statistics);
      summary.dataset.done = answer.done;
    });
  }
}
