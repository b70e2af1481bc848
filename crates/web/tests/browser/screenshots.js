// Draws the pictures of `crates/web/README.md`: `node screenshots.js FOLDER`, with the variables of the tests.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PAGE, choose, launch, open, settled, view } from './browser.js';
import { serve } from './server.js';

const FOLDER = process.argv[2];
/** The most bytes of a picture. */
const MOST = 40_000;

const browser = await launch();
const server = await serve({ '/': PAGE });

/** Converts a PNG file to WebP; the browser can. */
async function toWebp(page, png) {
  const base64 = await page.evaluate(async (png) => {
    const bytes = Uint8Array.from(atob(png), (each) => each.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes]));
    const canvas = new OffscreenCanvas(image.width, image.height);
    canvas.getContext('2d').drawImage(image, 0, 0);
    const webp = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/webp', quality: 0.7 })).arrayBuffer());
    return btoa(String.fromCharCode(...webp));
  }, png.toString('base64'));
  return Buffer.from(base64, 'base64');
}

async function draw(name, run, { width = 960, height = 640, ...options } = {}) {
  const { page, close } = await open(browser, server.address, { viewport: { width, height }, bypassCSP: true, ...options });
  await run(page);
  await page.evaluate(() => document.activeElement?.blur());
  await page.waitForTimeout(200);
  const webp = await toWebp(page, await page.screenshot());
  if (webp.length > MOST) throw new Error(`${name} has ${webp.length} bytes`);
  writeFileSync(join(FOLDER, `${name}.webp`), webp);
  await close();
}

const check = async (page, name) => {
  await choose(page, name);
  await page.click('#tab-check');
  await page.click('#check-all');
  await page.waitForSelector('#report[data-done=true]');
};

await draw('open', async () => {}, { height: 480 });
await draw('picture', async (page) => {
  await choose(page, 'picture.b2nd');
  await settled(page, 'picture');
  await page.fill('#index', '80, 210');
  await page.press('#index', 'Enter');
  await settled(page, 'picture');
}, { height: 760 });
await draw('dark', async (page) => {
  await choose(page, 'volume.b2nd');
  await settled(page, 'picture');
  await page.selectOption('#map', 'ember');
  await settled(page, 'picture');
}, { colorScheme: 'dark' });
await draw('plot', async (page) => {
  await choose(page, 'wave.b2nd');
  await settled(page, 'plot');
});
await draw('structures', async (page) => {
  await choose(page, 'table.b2nd');
  await view(page, 'table');
});
await draw('table', async (page) => {
  await choose(page, 'kinds.b2z');
  await page.waitForSelector('#summary[data-done=true]');
  await page.selectOption('#column-choice', 'speed');
  await page.waitForSelector('#summary[data-done=true]');
}, { height: 700 });
await draw('store', async (page) => {
  await choose(page, 'store.b2z');
  await page.check('#internal').catch(() => {});
  await page.click('#tree [data-key="/first/speed"]');
  await page.waitForFunction(() => document.querySelector('#facts').textContent.includes('20, 30'));
  await settled(page, 'picture');
});
await draw('chunks', async (page) => {
  await choose(page, 'volume.b2nd');
  await view(page, 'chunks');
  await page.focus('#chunks');
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => document.querySelector('#chunk-facts').textContent.startsWith('chunk'));
}, { height: 760 });
await draw('check', async (page) => check(page, 'damaged.b2z'));
await draw('phone', async (page) => {
  await choose(page, 'picture.b2nd');
  await settled(page, 'picture');
}, { width: 390, height: 760, hasTouch: true });
await browser.close();
server.close();
