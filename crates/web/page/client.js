// Requests to the worker, and the start of a new worker after a panic.

export class Client {
  #worker;
  #last = 0;
  #waiting = new Map();
  #onDead;
  #onChecking;

  /**
   * `onDead(text)` is called after a panic of the module; the file has to be opened again. `onChecking(message)` receives
   * the progress of a check.
   */
  constructor(onDead, onChecking = () => {}) {
    this.#onDead = onDead;
    this.#onChecking = onChecking;
    this.#start();
  }

  #start() {
    this.#worker = new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
    this.#worker.onmessage = ({ data }) => this.#receive(data);
    this.#worker.onerror = (event) => this.#dead(event.message || 'the module cannot be loaded');
  }

  #dead(text) {
    this.stop();
    this.#start();
    this.#onDead(text);
  }

  #receive(message) {
    if (message.type === 'dead') return this.#dead(message.text);
    if (message.type === 'checking') return this.#onChecking(message);
    const waiting = this.#waiting.get(message.id);
    if (!waiting) return;
    const { resolve, reject, update } = waiting;
    if ('error' in message) {
      this.#waiting.delete(message.id);
      reject(new Error(message.error));
    } else if (update) {
      // Not removed at the end: a change of colours sends the picture again.
      if (message.done) resolve(message);
      update(message);
    } else {
      this.#waiting.delete(message.id);
      resolve(message.result);
    }
  }

  /** Sends a request. `update` receives each message of long work. */
  call(type, content = {}, update) {
    const id = ++this.#last;
    if (update) {
      // A newer request of long work replaces the older one.
      for (const [other, waiting] of this.#waiting) if (waiting.type === type) this.#waiting.delete(other);
    }
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { type, resolve, reject, update });
      this.#worker.postMessage({ ...content, id, type });
    });
  }

  /** Ends long work of this type. */
  cancel(what) {
    for (const [id, { type, update }] of this.#waiting) if (update && type === what) this.#waiting.delete(id);
    this.#worker.postMessage({ type: 'cancel', what });
  }

  /** Ends the worker, whatever it does. */
  stop() {
    this.#worker.terminate();
    this.#waiting.clear();
  }
}
