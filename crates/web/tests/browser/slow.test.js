// A server that needs time for each answer: the bytes of many blocks are requested at the same time.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { FILES, PAGE, launch, open, settled, view } from './browser.js';
import { serve } from './server.js';

let browser;
let server;
before(async () => {
  browser = await launch();
  server = await serve({ '/files/': FILES, '/': PAGE }, { delay: 50 });
});
after(async () => {
  await browser?.close();
  server?.close();
});

test('the blocks of a picture are requested together', async (t) => {
  const { page, errors, close } = await open(browser, server.address, { path: '/?url=/files/blocks.b2nd' });
  try {
    await settled(page, 'picture');
    const ofFile = () => server.log.filter(({ path }) => path === '/files/blocks.b2nd');
    const requests = ofFile();
    const most = Math.max(...requests.map(({ open }) => open));
    t.diagnostic(`${requests.length} requests, at most ${most} at the same time`);
    assert.ok(most >= 4, `${most} requests at the same time`);
    assert.ok(requests.length < 64, `${requests.length} requests for 64 blocks`);
    // A second view of the same items needs no request.
    await view(page, 'plot');
    assert.equal(ofFile().length, requests.length);
    assert.deepEqual(errors, []);
  } finally {
    await close();
  }
});

test('colours that are chosen while a picture is read stay', async () => {
  const { page, errors, close } = await open(browser, server.address, { path: '/?url=/files/blocks.b2nd' });
  try {
    await page.waitForSelector('#map option[value=grey]', { state: 'attached' });
    assert.notEqual(await page.getAttribute('#picture', 'data-done'), 'true');
    await page.selectOption('#map', 'grey');
    await settled(page, 'picture');
    const middle = await page.evaluate(() => {
      const canvas = document.querySelector('#picture');
      return [...canvas.getContext('2d').getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data];
    });
    const [red, green, blue] = middle;
    assert.deepEqual([green, blue], [red, red]);
    assert.deepEqual(errors, []);
  } finally {
    await close();
  }
});
