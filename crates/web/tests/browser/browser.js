// The browser, and what all tests do with a page.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

/** The page of the viewer, and the files; the task sets both. */
export const PAGE = process.env.WEB_PAGE;
export const FILES = process.env.WEB_FILES;

export async function launch() {
  return chromium.launch({
    executablePath: execFileSync('which', [process.env.CHROMIUM ?? 'chromium'], { encoding: 'utf8' }).trim(),
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
}

/** Opens the page, and collects the hosts of all requests and the errors. */
export async function open(browser, address, { path = '/', ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  // Also on a machine with much other work.
  page.setDefaultTimeout(60_000);
  const hosts = new Set();
  const errors = [];
  context.on('request', (request) => { if (!request.url().startsWith('blob:')) hosts.add(new URL(request.url()).host); });
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => { if (message.type() === 'error') errors.push(message.text()); });
  await page.goto(address + path);
  await page.waitForSelector('html[data-ready]');
  return { page, hosts, errors, close: () => context.close() };
}

/** Opens a local file in the page, and waits until its facts are shown. */
export async function choose(page, name) {
  await page.setInputFiles('#file', `${FILES}/${name}`);
  await page.waitForFunction((name) => document.querySelector('#file-name').textContent.startsWith(`${name} ·`), name);
}

/** Shows a view, and waits until it is read completely. */
export async function view(page, name) {
  await page.click(`#tab-${name}`);
  await settled(page, name);
}

/** Waits until nothing more is read for a view. */
export async function settled(page, name) {
  const selector = { picture: '#picture', plot: '#plot', table: '#scroller', chunks: '#chunks', check: '#report' }[name];
  await page.waitForSelector(`${selector}[data-done=true]`);
  await page.waitForSelector('#progress', { state: 'hidden' });
  // What was received is drawn in the next frame.
  await page.evaluate(() => new Promise((drawn) => { requestAnimationFrame(() => requestAnimationFrame(drawn)); }));
}

/** Saves what is visible in a format, and returns the bytes. */
export async function save(page, format) {
  return saveBy(page, `[data-format=${format}]`);
}

/** Clicks a button that saves a file, and returns the bytes. */
export async function saveBy(page, selector) {
  const [download] = await Promise.all([page.waitForEvent('download'), page.click(selector)]);
  return readFileSync(await download.path());
}

/** The facts that the page lists. */
export async function facts(page) {
  return page.evaluate(() => Object.fromEntries([...document.querySelectorAll('#facts dt')].map((term) =>
    [term.textContent, term.nextElementSibling.textContent])));
}

/** The dtype, the shape and the items of a `.npy` file. */
export function parseNpy(bytes) {
  const length = bytes[6] === 1 ? bytes.readUInt16LE(8) : bytes.readUInt32LE(8);
  const start = bytes[6] === 1 ? 10 : 12;
  const header = bytes.toString('latin1', start, start + length);
  const shape = /'shape': \(([^)]*)\)/.exec(header)[1].split(',').filter((side) => side.trim()).map(Number);
  return { header, shape, items: bytes.subarray(start + length) };
}

/** The most memory that a process of a page had, in MiB. Needs Linux. */
export async function memory(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  const peaks = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => {
    const [, peak] = /VmHWM:\s*(\d+) kB/.exec(readFileSync(`/proc/${id}/status`, 'latin1'));
    return Math.round(peak / 1024);
  });
  return Math.max(...peaks);
}
