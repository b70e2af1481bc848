// A server on the loopback interface for the page and the files, with ranges and a log of requests.

import { createServer } from 'node:http';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.wasm': 'application/wasm' };

/**
 * Serves the folders `{ '/prefix/': folder }`. `options`: `ranges` false ignores ranges, `cors` allows other pages, `delay`
 * is the time before the answer to a range in milliseconds. Returns the address, the log
 * (`{ path, bytes, range, open }`, with the number of requests that are not answered yet), and a function that ends the
 * server.
 */
export async function serve(folders, { ranges = true, cors = false, delay = 0 } = {}) {
  const log = [];
  let open = 0;
  const server = createServer(async (request, response) => {
    open += 1;
    response.on('close', () => { open -= 1; });
    const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    const prefix = Object.keys(folders).find((prefix) => path.startsWith(prefix));
    const file = prefix && join(folders[prefix], normalize(`/${path.slice(prefix.length) || 'index.html'}`));
    const facts = file ? await stat(file).catch(() => undefined) : undefined;
    if (cors) {
      response.setHeader('Access-Control-Allow-Origin', '*');
      response.setHeader('Access-Control-Expose-Headers', 'Content-Range, ETag');
    }
    if (!facts?.isFile()) {
      log.push({ path, bytes: 0, open });
      response.writeHead(404).end('not found');
      return;
    }
    response.setHeader('Content-Type', TYPES[extname(file)] ?? 'application/octet-stream');
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('ETag', `"${facts.size}-${facts.mtimeMs}"`);
    const range = ranges ? /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') : null;
    const [start, end] = range ? [Number(range[1]), Math.min(Number(range[2]), facts.size - 1)] : [0, facts.size - 1];
    log.push({ path, range: request.headers.range, bytes: request.method === 'HEAD' ? 0 : end - start + 1, open });
    if (range && delay) await new Promise((resolve) => { setTimeout(resolve, delay); });
    response.setHeader('Content-Length', end - start + 1);
    if (range) response.setHeader('Content-Range', `bytes ${start}-${end}/${facts.size}`);
    response.writeHead(range ? 206 : 200);
    if (request.method === 'HEAD' || facts.size === 0) return response.end();
    createReadStream(file, { start, end }).pipe(response);
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const close = () => { server.closeAllConnections(); server.close(); };
  return { address: `http://127.0.0.1:${server.address().port}`, log, close };
}
