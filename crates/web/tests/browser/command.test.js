// `blosc2 view --web FILE`: the printed address shows the file.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { FILES, facts, launch, settled } from './browser.js';

test('the command shows a file', async () => {
  const command = spawn(process.env.BLOSC2_COMMAND, ['view', '--web', '--no-open', `${FILES}/volume.b2nd`], { stdio: ['ignore', 'pipe', 'inherit'] });
  const browser = await launch();
  try {
    const [address] = await new Promise((resolve, reject) => {
      const lines = createInterface({ input: command.stdout });
      lines.once('line', (line) => resolve([line]));
      command.once('exit', (code) => reject(new Error(`the command ended with ${code}`)));
    });
    const page = await (await browser.newContext()).newPage();
    const hosts = new Set();
    const errors = [];
    page.on('request', (request) => { if (!request.url().startsWith('blob:')) hosts.add(new URL(request.url()).host); });
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('console', (message) => { if (message.type() === 'error') errors.push(message.text()); });
    await page.goto(address);
    await page.waitForFunction(() => document.querySelector('#file-name').textContent.startsWith('volume.b2nd ·'));
    await settled(page, 'picture');
    assert.equal((await facts(page)).shape, '20, 60, 80');
    assert.deepEqual([...hosts], [new URL(address).host]);
    assert.deepEqual(errors, []);
  } finally {
    await browser.close();
    command.removeAllListeners('exit');
    command.kill('SIGINT');
  }
});
