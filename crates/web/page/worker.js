// The worker: it reads files, and runs the module that decodes them.
//
// Requests have an `id` and a `type`. Long work is done in short steps, so that a newer request of the same type, or
// `cancel`, ends it.

/** A module with an instruction of SIMD; only browsers that have SIMD accept it. */
const SIMD = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
]);
/** Milliseconds of work between two looks at the messages. */
const SLICE = 25;
/** Milliseconds between two updates of a view. */
const UPDATE = 120;
/** The number of blocks whose bytes are requested from a server at the same time. */
const AHEAD = 24;
/** The number of requests one after the other: pages of the index, the head of a chunk, blocks. */
const ROUNDS = 4;
/** Parts of a file with a smaller distance, in bytes, are one request. */
const GAP = 16384;
/** After this number of blocks that cannot be read, a view is not continued. */
const MAX_ERRORS = 20;

let module;
let viewer;
let panic;
/** What is open: an object with `size` and `read(offset, bytes)`. */
const files = new Map();
/** The number of bytes that were read. */
let bytesRead = 0;
/** Called after each read. */
let onRead = () => {};
/** The id of the newest request of each type of long work. */
const active = new Map();
/** What ends the requests in advance of each type of long work. */
const requests = new Map();

/** Ends long work of a type, or of all types. */
function stop(types = [...active.keys()]) {
  for (const type of types) {
    active.delete(type);
    requests.get(type)?.abort();
  }
}

self.blosc2Read = (handle, offset, bytes) => {
  files.get(handle).read(offset, bytes);
  bytesRead += bytes.length;
  onRead();
};
self.blosc2Panic = (text) => {
  panic = text;
};

function localFile(file) {
  const reader = new FileReaderSync();
  return {
    size: file.size,
    read(offset, bytes) {
      let part;
      try {
        part = reader.readAsArrayBuffer(file.slice(offset, offset + bytes.length));
      } catch (error) {
        throw `cannot read ${bytes.length} bytes at offset ${offset} of ${file.name}: ${error.message}`;
      }
      if (part.byteLength !== bytes.length) throw `${file.name} ends early: it was changed after it was opened`;
      bytes.set(new Uint8Array(part));
    },
  };
}

/** Sends a request and waits for the answer. */
function request(method, url, range) {
  const request = new XMLHttpRequest();
  request.open(method, url, false);
  if (range) {
    request.responseType = 'arraybuffer';
    request.setRequestHeader('Range', range);
  }
  request.send();
  return request;
}

function checkStatus(answer, url) {
  if (answer.status === 404) throw `There is no file at ${url} (status 404).`;
  if (answer.status >= 400) throw `The server refuses ${url}: status ${answer.status} ${answer.statusText}`;
}

async function remoteFile(url) {
  let answer;
  try {
    answer = request('GET', url, 'bytes=0-0');
  } catch {
    throw await whyUnreachable(url);
  }
  checkStatus(answer, url);
  if (answer.status !== 206) {
    throw `The server of ${url} ignores range requests (expected status 206, found ${answer.status}), so single parts `
      + 'of the file cannot be read. Download the file and open it here, or use a server with ranges.';
  }
  const total = /\/(\d+)$/.exec(answer.getResponseHeader('Content-Range') ?? '')?.[1];
  const size = Number(total ?? request('HEAD', url).getResponseHeader('Content-Length') ?? NaN);
  if (!Number.isSafeInteger(size)) {
    throw `The server of ${url} does not state the size of the file: it has to expose the header Content-Range `
      + '(Access-Control-Expose-Headers: Content-Range).';
  }
  const version = answer.getResponseHeader('ETag') ?? answer.getResponseHeader('Last-Modified');
  /** Parts that were requested in advance: objects with `offset` and `bytes`. */
  const parts = new Set();
  /** While it is an array, it collects the ranges that are not in `parts`, instead of waiting for the server. */
  let missing;
  const part = async ({ offset, end }, signal) => {
    // The cache of the browser would let requests for one address wait for each other.
    const answer = await fetch(url, { cache: 'no-store', signal, headers: { Range: `bytes=${offset}-${end - 1}` } });
    const found = answer.headers.get('ETag') ?? answer.headers.get('Last-Modified');
    if (answer.status !== 206 || found !== version) {
      await answer.body?.cancel();
      return undefined;
    }
    const bytes = new Uint8Array(await answer.arrayBuffer());
    return bytes.length === end - offset ? { offset, bytes } : undefined;
  };
  return {
    size,
    /**
     * Runs `attempt`, and requests all bytes that it needs at the same time, until it needs no more, or `signal` is set.
     * What a request does not bring is requested again, with a message about the failure, by the one who needs it.
     */
    async ahead(attempt, signal) {
      const mine = [];
      try {
        for (let round = 0; !signal.aborted; round += 1) {
          missing = [];
          attempt();
          const ranges = joined(missing);
          missing = undefined;
          if (ranges.length === 0 || round === ROUNDS) break;
          const found = await Promise.all(ranges.map((range) => part(range, signal).catch(() => undefined)));
          for (const each of found.filter(Boolean)) {
            parts.add(each);
            mine.push(each);
          }
        }
      } finally {
        missing = undefined;
        for (const each of mine) parts.delete(each);
      }
    },
    read(offset, bytes) {
      const end = offset + bytes.length;
      const known = [...parts].find((part) => part.offset <= offset && end <= part.offset + part.bytes.length);
      if (known) return bytes.set(known.bytes.subarray(offset - known.offset, end - known.offset));
      if (missing) {
        missing.push({ offset, end });
        throw 'requested in advance';
      }
      let answer;
      try {
        answer = request('GET', url, `bytes=${offset}-${offset + bytes.length - 1}`);
      } catch {
        throw `no answer from the server for ${bytes.length} bytes at offset ${offset} of ${url}`;
      }
      checkStatus(answer, url);
      const found = answer.getResponseHeader('ETag') ?? answer.getResponseHeader('Last-Modified');
      if (found !== version) throw `${url} was changed after it was opened: open it again`;
      const sent = answer.response;
      if (answer.status !== 206 || sent.byteLength !== bytes.length) {
        throw `the server sent ${sent.byteLength} bytes with status ${answer.status} instead of ${bytes.length} bytes at `
          + `offset ${offset} of ${url}`;
      }
      bytes.set(new Uint8Array(sent));
    },
  };
}

/** Joins ranges that overlap or are close to each other. */
function joined(ranges) {
  const all = [];
  for (const { offset, end } of ranges.toSorted((a, b) => a.offset - b.offset)) {
    const last = all.at(-1);
    if (last && offset <= last.end + GAP) last.end = Math.max(last.end, end);
    else all.push({ offset, end });
  }
  return all;
}

/** Returns why a server sent no answer that this page may read. */
async function whyUnreachable(url) {
  const abort = new AbortController();
  try {
    await fetch(url, { mode: 'no-cors', signal: abort.signal });
  } catch {
    return `No answer from the server of ${url}. Check the address and the connection.`;
  } finally {
    abort.abort();
  }
  return `The server of ${url} does not allow this page to read the file: it sends no CORS headers `
    + '(Access-Control-Allow-Origin). Download the file and open it here, or ask the owner of the server.';
}

const tick = () => new Promise((resolve) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { port1.close(); resolve(); };
  port2.postMessage(null);
});

/** After a panic, the module is unusable: ends the worker if `error` is one. */
function endIfPanic(error) {
  if (!(error instanceof WebAssembly.RuntimeError)) return;
  self.postMessage({ type: 'dead', text: panic ?? error.message });
  self.close();
}

/**
 * Runs `step` until it returns false, a newer request of this type arrives, or `budget` bytes were read. Calls `update`
 * from time to time, and at the end with true.
 */
async function run({ id, type, budget = Infinity }, step, update, isCoarse = () => false) {
  const start = bytesRead;
  const errors = [];
  let count = 0;
  let updated = performance.now();
  const file = files.get(1);
  for (let more = true; more;) {
    if (file.ahead) {
      const abort = new AbortController();
      requests.set(type, abort);
      await file.ahead(() => viewer.prepare(type, AHEAD), abort.signal);
      if (active.get(type) !== id) return;
    }
    const end = performance.now() + SLICE;
    let steps = file.ahead ? AHEAD : Infinity;
    do {
      steps -= 1;
      try {
        more = step();
      } catch (error) {
        endIfPanic(error);
        count += 1;
        if (errors.length < 5) errors.push(String(error));
        if (type === 'export' || type === 'map') throw error;
        if (count >= MAX_ERRORS) more = false;
      }
    } while (more && steps > 0 && performance.now() < end);
    const spent = bytesRead - start >= budget && !isCoarse();
    const state = { errors, count, stopped: more && spent };
    if (!more || spent) {
      update(true, state);
      break;
    }
    if (performance.now() - updated >= UPDATE && !isCoarse()) {
      update(false, state);
      updated = performance.now();
    }
    await tick();
    if (active.get(type) !== id) return;
  }
}

const json = (value) => JSON.stringify(value);

/** The range of the colours: two numbers, or percentiles of the statistics. */
function colourRange({ low, high, percent, log }, statistics) {
  if (!('min' in statistics)) return [0, 1];
  const at = (percent) => statistics.percentiles.find(([each]) => each === percent)?.[1];
  let [from, to] = percent === undefined ? [low, high] : [at(percent), at(100 - percent)];
  if (log && from <= 0) from = Math.min(statistics.positive ?? 1, to);
  return [from, to];
}

function sendPicture() {
  const { id, colours, done, state } = picture;
  const statistics = JSON.parse(viewer.picture_statistics());
  const [low, high] = colourRange(colours, statistics);
  const pixels = viewer.picture_paint(json({ ...colours, low, high }));
  const facts = JSON.parse(viewer.picture_facts());
  const answer = { id, type: 'picture', done, facts, statistics, low, high, pixels, bytesRead, ...state };
  self.postMessage(answer, [pixels.buffer]);
}

/** The last picture: its request, its colours, which can change while it is read, and what was sent last. */
let picture = {};

const actions = {
  async open({ file, url }) {
    files.clear();
    files.set(1, file ? localFile(file) : await remoteFile(url));
    viewer?.free();
    viewer = undefined;
    picture = {};
    stop();
    bytesRead = 0;
    viewer = module.Viewer.open(1, files.get(1).size);
    return JSON.parse(viewer.facts());
  },
  choose({ key }) {
    picture = {};
    stop();
    viewer.choose(key);
    return JSON.parse(viewer.facts());
  },
  metalayers: () => JSON.parse(viewer.metalayers()),
  value: ({ at }) => viewer.value(json(at)),
  cells: ({ request }) => JSON.parse(viewer.cells(json(request))),
  chunk: ({ chunk }) => JSON.parse(viewer.chunk(chunk)),
  colours: ({ map }) => module.colours(map),
  async check({ file, url, content }) {
    files.set(1, file ? localFile(file) : await remoteFile(url));
    const { size } = files.get(1);
    let sent = 0;
    onRead = () => {
      if (performance.now() - sent < UPDATE) return;
      sent = performance.now();
      self.postMessage({ type: 'checking', bytesRead, size });
    };
    return JSON.parse(module.check(1, size, content));
  },
  async picture(message) {
    const { id, request, colours } = message;
    viewer.picture(json(request));
    picture = { id, colours };
    const isCoarse = () => JSON.parse(viewer.picture_facts()).coarse;
    await run(message, () => viewer.picture_step(), (done, state) => {
      Object.assign(picture, { done, state });
      sendPicture();
    }, isCoarse);
  },
  paint({ colours }) {
    picture.colours = colours;
    // Otherwise the first pixels are sent later, in these colours.
    if (picture.state) sendPicture();
  },
  async plot(message) {
    const { id, request } = message;
    viewer.plot(json(request));
    await run(message, () => viewer.plot_step(), (done, state) => {
      const facts = JSON.parse(viewer.plot_facts());
      const columns = viewer.plot_columns();
      const statistics = JSON.parse(viewer.plot_statistics());
      self.postMessage({ id, type: 'plot', done, facts, statistics, columns, bytesRead, ...state }, [columns.buffer]);
    }, () => JSON.parse(viewer.plot_facts()).coarse);
  },
  async scan(message) {
    const { id, request } = message;
    viewer.scan(json(request));
    await run(message, () => viewer.scan_step(), (done, state) => {
      const statistics = JSON.parse(viewer.scan_statistics());
      self.postMessage({ id, type: 'scan', done, statistics, progress: viewer.scan_progress(), bytesRead, ...state });
    });
  },
  async map(message) {
    const { id } = message;
    viewer.map();
    await run(message, () => viewer.map_step(), (done) => {
      if (!done) return self.postMessage({ id, type: 'map', done, progress: viewer.map_progress() });
      const sizes = viewer.map_sizes();
      self.postMessage({ id, type: 'map', done, sizes, bytesRead }, [sizes.buffer]);
    });
  },
  async column(message) {
    const { id, request } = message;
    viewer.column(json(request));
    await run(message, () => viewer.column_step(), (done, state) => {
      const statistics = JSON.parse(viewer.column_statistics());
      const progress = viewer.column_progress();
      self.postMessage({ id, type: 'column', done, statistics, progress, bytesRead, ...state });
    });
  },
  async export(message) {
    const { id, request, format } = message;
    viewer.export(json(request));
    await run(message, () => viewer.export_step(), (done) => {
      if (!done) return self.postMessage({ id, type: 'export', done, progress: viewer.export_progress() });
      const bytes = viewer.export_file(format);
      self.postMessage({ id, type: 'export', done, bytes, bytesRead }, [bytes.buffer]);
    });
  },
};

const ready = (async () => {
  module = await import(WebAssembly.validate(SIMD) ? './blosc2_web_simd.js' : './blosc2_web.js');
  await module.default();
})();

self.onmessage = async ({ data: message }) => {
  const { id, type } = message;
  if (type === 'cancel') {
    stop([message.what]);
    return;
  }
  stop([type]);
  active.set(type, id);
  try {
    await ready;
    const long = ['picture', 'plot', 'scan', 'map', 'column', 'export'].includes(type);
    const result = await actions[type](message);
    if (!long) self.postMessage({ id, type, result, bytesRead });
  } catch (error) {
    endIfPanic(error);
    const text = typeof error === 'string' ? error : error?.message ?? String(error);
    self.postMessage({ id, type, error: text });
  }
};
