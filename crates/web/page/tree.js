// The contents of a store as a tree, with the keys of the ARIA pattern for trees.

import { element } from './text.js';

/** Up to this number of entries, all groups are open at first. */
const OPEN = 200;

export class Tree {
  /** `choose(key)` is called for an entry. */
  constructor(root, choose) {
    this.root = root;
    this.choose = choose;
    root.addEventListener('click', (event) => {
      const item = event.target.closest('[role=treeitem]');
      if (!item) return;
      this.#focus(item);
      if (event.target.closest('.twist') || item.dataset.key === undefined) this.#toggle(item);
      else this.choose(item.dataset.key);
    });
    root.addEventListener('keydown', (event) => this.#key(event));
  }

  /** Shows entries. A store that is a table has the single key `/`. */
  fill(keys) {
    const top = { name: '', children: new Map() };
    for (const key of keys) {
      let node = top;
      for (const name of key === '/' ? ['the table'] : key.slice(1).split('/')) {
        if (!node.children.has(name)) node.children.set(name, { name, children: new Map() });
        node = node.children.get(name);
      }
      node.key = key;
    }
    this.openAll = keys.length <= OPEN;
    this.root.replaceChildren(...this.#items(top, 1));
    const first = this.root.querySelector('[role=treeitem]');
    if (first) first.tabIndex = 0;
  }

  /** Marks an entry as the one that is shown. */
  select(key) {
    this.#reveal(key);
    for (const item of this.root.querySelectorAll('[aria-selected=true]')) item.setAttribute('aria-selected', 'false');
    const item = this.#item(key);
    if (!item) return;
    item.setAttribute('aria-selected', 'true');
    this.#setStop(item);
  }

  #item(key) {
    return [...this.root.querySelectorAll('[data-key]')].find((item) => item.dataset.key === key);
  }

  /** Opens the groups above an entry. */
  #reveal(key) {
    const names = key.slice(1).split('/');
    let list = this.root;
    for (const name of names.slice(0, -1)) {
      const item = [...list.children].find((each) => each.dataset.name === name);
      if (!item) return;
      this.#set(item, true);
      list = item.querySelector('[role=group]');
      if (!list) return;
    }
  }

  #items(node, level) {
    // Groups and entries in the order of the keys.
    return [...node.children.values()].map((child) => {
      const isGroup = child.children.size > 0;
      const item = element('li', { role: 'treeitem', tabIndex: -1, 'aria-level': level, 'aria-label': child.name },
        element('span', { className: 'row' }, element('span', { className: isGroup ? 'twist' : 'leaf', 'aria-hidden': 'true' }), child.name));
      item.dataset.name = child.name;
      if (child.key !== undefined) {
        item.dataset.key = child.key;
        item.setAttribute('aria-selected', 'false');
      }
      if (isGroup) {
        item.node = child;
        this.#set(item, this.openAll);
      }
      return item;
    });
  }

  /** Opens or closes a group. Its items are made when it is first opened. */
  #set(item, isOpen) {
    if (!item.node) return;
    item.setAttribute('aria-expanded', isOpen);
    let group = item.querySelector(':scope > [role=group]');
    if (isOpen && !group) {
      group = element('ul', { role: 'group' }, ...this.#items(item.node, Number(item.getAttribute('aria-level')) + 1));
      item.append(group);
    }
    if (group) group.hidden = !isOpen;
  }

  #toggle(item) {
    this.#set(item, item.getAttribute('aria-expanded') !== 'true');
  }

  /** The items that are not in a closed group. */
  #visible() {
    return [...this.root.querySelectorAll('[role=treeitem]')].filter((item) => !item.closest('[role=group][hidden]'));
  }

  #setStop(item) {
    for (const other of this.root.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    item.tabIndex = 0;
  }

  #focus(item) {
    if (!item) return;
    this.#setStop(item);
    item.focus();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const item = event.target.closest('[role=treeitem]');
    const all = this.#visible();
    const at = all.indexOf(item);
    const isOpen = item.getAttribute('aria-expanded');
    const parent = item.parentElement.closest('[role=treeitem]');
    const siblings = [...item.parentElement.children];
    const actions = {
      ArrowDown: () => this.#focus(all[at + 1]),
      ArrowUp: () => this.#focus(all[at - 1]),
      Home: () => this.#focus(all[0]),
      End: () => this.#focus(all.at(-1)),
      ArrowRight: () => (isOpen === 'false' ? this.#set(item, true) : isOpen && this.#focus(all[at + 1])),
      ArrowLeft: () => (isOpen === 'true' ? this.#set(item, false) : this.#focus(parent)),
      Enter: () => (item.dataset.key === undefined ? this.#toggle(item) : this.choose(item.dataset.key)),
      '*': () => siblings.forEach((each) => this.#set(each, true)),
    };
    actions[' '] = actions.Enter;
    const action = actions[event.key];
    if (action) action();
    else if (event.key.length === 1) {
      const starts = (each) => each.dataset.name.toLowerCase().startsWith(event.key.toLowerCase());
      this.#focus([...all.slice(at + 1), ...all.slice(0, at)].find(starts));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
