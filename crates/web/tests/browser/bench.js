// Measures the page: `node bench.js FILE DECODE`, with the variables of the tests. FILE is an array of two axes that fits the
// cache of blocks, DECODE the example `decode` of the crate.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { basename, dirname } from 'node:path';
import { PAGE, launch, open, settled } from './browser.js';
import { serve } from './server.js';

const [file, decode] = process.argv.slice(2);
const browser = await launch();
const server = await serve({ '/file/': dirname(file), '/': PAGE });
const { page } = await open(browser, server.address);

/** The MB/s of five runs of the module in the page. */
async function inPage() {
  return page.evaluate(async (url) => {
    const module = await import('./blosc2_web_simd.js');
    await module.default();
    const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
    globalThis.blosc2Read = (_, offset, buffer) => buffer.set(bytes.subarray(offset, offset + buffer.length));
    const speeds = [];
    for (let run = 0; run < 5; run += 1) {
      const viewer = module.Viewer.open(1, bytes.length);
      const { facts, items } = JSON.parse(viewer.facts());
      const start = performance.now();
      viewer.export(JSON.stringify({ ranges: items.shape.map((side) => [0, side]) }));
      while (viewer.export_step());
      speeds.push(Math.round(facts.nbytes / (performance.now() - start) / 1e3));
      viewer.free();
    }
    return speeds;
  }, `file/${basename(file)}`);
}

const native = () => execFileSync(decode, [file], { encoding: 'utf8' }).trim().split('\n').map(Number);
const best = (speeds) => Math.max(...speeds);
const rounds = [[native(), await inPage()], [native(), await inPage()]];
console.log(`decoding in MB/s, native and in the page: ${JSON.stringify(rounds)}`);
console.log(`page / native: ${rounds.map(([native, page]) => (best(page) / best(native)).toFixed(2)).join(', ')}`);

// Panning over blocks that are in the cache, as fast as frames are drawn.
page.setDefaultTimeout(120_000);
await page.setInputFiles('#file', file);
await settled(page, 'picture');
for (let k = 0; k < 6; k += 1) await page.click('#zoom-in');
await settled(page, 'picture');
const pan = () => page.evaluate(async () => {
  const canvas = document.querySelector('#picture');
  const send = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: x, clientY: y, bubbles: true }));
  canvas.setPointerCapture = () => {};
  const { left, top } = canvas.getBoundingClientRect();
  let answers = 0;
  const observer = new MutationObserver(() => { answers += 1; });
  observer.observe(canvas, { attributeFilter: ['aria-label'] });
  send('pointerdown', left + 400, top + 200);
  const start = performance.now();
  let frames = 0;
  let longest = 0;
  let last = start;
  while (performance.now() - start < 5000) {
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    frames += 1;
    const angle = frames / 20;
    send('pointermove', left + 400 + 150 * Math.sin(angle), top + 200 + 100 * Math.sin(angle * 0.7));
  }
  send('pointerup', left + 400, top + 200);
  observer.disconnect();
  const seconds = (performance.now() - start) / 1000;
  return { frames: Math.round(frames / seconds), pictures: Math.round(answers / seconds), longest: Math.round(longest) };
});
/** The processor time of the browser, in seconds: on a machine with other work it says more than the time of a clock. */
async function cpu() {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  return processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
}
await pan();
const before = await cpu();
const panned = await pan();
const perFrame = (await cpu() - before) / (panned.frames * 5) * 1000;
console.log(`panning, per second: ${JSON.stringify(panned)} (longest frame in ms), ${Math.round(perFrame)} ms of processor time for each frame`);
console.log(`load: ${loadavg().map((each) => each.toFixed(1)).join(', ')}`);
await browser.close();
server.close();
