// dynamodb-admin's pages in a headless browser: tables are listed and deleted; items are paged through, filtered,
// queried, added, edited and deleted. The pages build every cursor from the last item's keys.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { after, before, describe } from 'node:test';

import { GetCommand } from '@aws-sdk/lib-dynamodb';
import { chromium } from 'playwright-core';

import { connect, documents, makeTable, test } from '../board.js';
import { dropTable, LOBBY, makeRooms, messages, ordered } from '../chat.js';

const { createServer } = createRequire(import.meta.url)('dynamodb-admin');
const Rooms = 'Chat_admin';
const executablePath = process.env.HEATSINK_CHROMIUM ?? '/usr/bin/chromium';
const ids = (found) => found.map(({ id }) => id);

describe('dynamodb-admin', () => {
  let browser, page, server, site;
  before(async () => {
    await makeRooms(Rooms);
    server = createServer({ dynamoDbClient: connect() }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    site = `http://127.0.0.1:${server.address().port}`;
    // Containers have no user namespaces for the browser's sandbox; it opens nothing but the page above.
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
    page = await browser.newPage({ baseURL: site });
    page.setDefaultTimeout(20_000);
    page.on('dialog', (dialog) => dialog.accept());
  });
  after(async () => {
    await browser?.close();
    server?.close();
    server?.closeAllConnections();
    await dropTable(Rooms);
  });

  /** Waits until the items are there (or are none), and reads the ids from the links. */
  async function shown() {
    await page.locator('#items-container tr, .no-results:not(.d-none)').first().waitFor();
    assert.equal(await page.locator('#table-placeholder').isVisible(), false);
    const links = await page.locator('#items-container a[href*="/items/"]').evaluateAll((all) => all.map((a) => a.getAttribute('href')));
    return links.map((link) => {
      const [room, id] = decodeURIComponent(link.split('/items/')[1]).split(',');
      return { room, id };
    });
  }

  /** Every page of what is shown now, by the Next link. */
  async function everyPage() {
    const pages = [await shown()];
    while (await page.locator('.page-item-next:not(.disabled)').isVisible()) {
      await page.locator('.page-link-next').click();
      await page.waitForURL(new RegExp(`pageNum=${pages.length + 1}\\b`));
      pages.push(await shown());
    }
    return pages;
  }

  /** Fills the form and searches: filters are rows of key, operator, value, type. */
  async function search({ operation = 'scan', selection = 'table', filters = [], pageSize = 25 }) {
    const given = Object.fromEntries(filters.map(([name, operator, value, type = 'S']) => [name, { operator, value, type }]));
    const query = new URLSearchParams({
      operationType: operation, queryableSelection: selection, filters: JSON.stringify(given), pageSize });
    await page.goto(`/tables/${Rooms}?${query}`);
    return shown();
  }

  test('tables are listed and filtered by name, and nothing of the gateway shows', async () => {
    await page.goto('/');
    const names = await page.locator('#table-list li').evaluateAll((all) => all.map((li) => li.dataset.tableName));
    assert.ok(names.includes(Rooms));
    assert.deepEqual(names.filter((name) => /heatsink/i.test(name)), []);
    await page.fill('#filter-input', 'chat_adm');
    const visible = await page.locator('#table-list li:visible').evaluateAll((all) => all.map((li) => li.dataset.tableName));
    assert.deepEqual(visible, names.filter((name) => name.toLowerCase().includes('chat_adm')));
    await page.locator(`#table-list li[data-table-name="${Rooms}"] a`).first().click();
    await page.waitForURL(`**/tables/${Rooms}`);
    assert.equal((await shown()).length, 25);
  });

  test('paging forward shows every item once, and back the page before', async () => {
    await page.goto(`/tables/${Rooms}`);
    const pages = await everyPage();
    assert.deepEqual(pages.map((one) => one.length), [25, 25, 25, 1]);
    assert.deepEqual(ids(pages.flat()).sort(), ids(messages));
    assert.deepEqual(pages.flat().filter(({ id, room }) => messages[Number(id)].room !== room), []);
    await page.goto(`/tables/${Rooms}`);
    await shown();
    await page.locator('.page-link-next').click();
    await page.waitForURL(/pageNum=2\b/);
    assert.deepEqual(await shown(), pages[1]);
    await page.locator('.page-link-previous').click();
    await page.waitForURL(/pageNum=1\b/);
    assert.deepEqual(await shown(), pages[0]);
  });

  test('a row shows the attributes as they were stored', async () => {
    await search({ filters: [['id', '=', '0042']] });
    const columns = await page.locator('#actions-row th').allInnerTexts();
    const cells = await page.locator('#items-container tr').first().locator('td').allInnerTexts();
    const row = Object.fromEntries(columns.map((name, place) => [name, cells[place].trim()]));
    const { Actions, ...values } = row;
    assert.deepEqual(columns.slice(0, 3), ['Actions', 'room', 'id']);
    const want = Object.fromEntries(Object.entries(messages[42]).map(([name, value]) => [name, JSON.stringify(value)]));
    assert.deepEqual(values, want);
  });

  test('filters, typed into the form, hold on every page', async () => {
    await page.goto(`/tables/${Rooms}`);
    await shown();
    await page.locator('.filter-row-key').last().fill('author');
    await page.locator('.filter-row-operator').last().selectOption('<>');
    await page.locator('.filter-row-value').last().fill('bob');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/filters=/);
    const pages = await everyPage();
    assert.deepEqual(ids(pages.flat()).sort(), ids(messages.filter(({ author }) => author !== 'bob')));
    assert.equal(pages[0].length, 25);
    for (const [filters, keep] of [
      [[['room', '=', LOBBY], ['author', '=', 'ann']], ({ room, author }) => room === LOBBY && author === 'ann'],
      [[['rank', '>', '20', 'N']], ({ rank }) => rank > 20],
      [[['text', 'begins_with', 'message 6']], ({ text }) => text.startsWith('message 6')],
      [[['room', '=', 'nowhere']], () => false],
    ]) {
      assert.deepEqual(ids(await search({ filters, pageSize: 100 })).sort(), ids(messages.filter(keep)));
    }
  });

  test('queries on the table and its global indexes come in order', async () => {
    const room = ['room', '=', LOBBY];
    const query = (selection, filters, pageSize) => search({ operation: 'query', selection, filters, pageSize });
    assert.deepEqual(ids(await query('table', [room], 100)), ids(ordered('table')));
    assert.deepEqual(ids(await query('table', [room])), ids(ordered('table').slice(0, 25)));
    assert.deepEqual(
      ids(await query('table', [room, ['id', 'begins_with', '002']])), ids(ordered('table', true, ({ id }) => id.startsWith('002'))));
    assert.deepEqual(
      ids(await query('table', [room, ['id', '>=', '0060'], ['author', '=', 'cyd']])),
      ids(ordered('table', true, ({ id, author }) => id >= '0060' && author === 'cyd')));
    assert.deepEqual(ids(await query('by_rank', [room], 100)), ids(ordered('by_rank')));
    assert.deepEqual(ids(await query('by_author', [['author', '=', 'bob']], 100)), ids(ordered('by_author')));
    assert.deepEqual(
      ids(await query('by_rank', [room, ['rank', '<', '-10', 'N']], 100)), ids(ordered('by_rank', true, ({ rank }) => rank < -10)));
    // The Next link leads from the first page to a start key that the page made from the last item's primary key.
    await query('table', [room]);
    const next = new URL(await page.locator('.page-link-next').getAttribute('href'), site);
    assert.deepEqual(JSON.parse(next.searchParams.get('startKey')), { room: LOBBY, id: '0024' });
    const query2 = new URLSearchParams(new URL(page.url()).search);
    query2.set('startKey', next.searchParams.get('startKey'));
    await page.goto(`/tables/${Rooms}?${query2}`);
    assert.deepEqual(ids(await shown()), ids(ordered('table').slice(25, 50)));
  });

  test('an item is added, found, edited and deleted', async () => {
    const stored = async () => (await documents.send(new GetCommand({ TableName: Rooms, Key: { room: 'new#~1', id: 'a' } }))).Item;
    const item = { room: 'new#~1', id: 'a', author: 'dan', rank: 60, topic: 'zz', text: 'hello' };
    const write = (value) => page.evaluate((text) => window.ace.edit('documentTextarea').setValue(text), JSON.stringify(value));
    const read = () => page.evaluate(() => window.ace.edit('documentTextarea').getValue());
    await page.goto(`/tables/${Rooms}/add-item`);
    assert.deepEqual(JSON.parse(await read()), { room: '', id: '' });
    await write(item);
    await page.click('#saveButton');
    await page.waitForURL('**/items/**');
    assert.deepEqual(JSON.parse(await read()), item);
    assert.deepEqual(await stored(), item);

    await page.goto(`/tables/${Rooms}/get`);
    await page.fill('input[name=hash]', item.room);
    await page.fill('input[name=range]', item.id);
    await page.getByRole('button', { name: 'Get' }).click();
    await page.waitForURL('**/items/**');
    assert.deepEqual(JSON.parse(await read()), item);

    await write({ ...item, text: 'edited', more: [1, { two: null }] });
    await page.click('#saveButton');
    await page.locator('#saveButton.btn-success').waitFor();
    assert.deepEqual(await stored(), { ...item, text: 'edited', more: [1, { two: null }] });

    await page.getByRole('button', { name: 'Delete' }).click();
    await page.waitForURL(`**/tables/${Rooms}`);
    await shown();
    assert.equal(await stored(), undefined);
    const answer = await page.goto(`/tables/${Rooms}/items/${encodeURIComponent('new#~1,a')}`);
    assert.equal(answer.status(), 404);
  });

  test('a table is described and deleted', async () => {
    await makeTable('Made_for_admin', ['pk', 'sk'], { pk: 'S', sk: 'N' });
    await page.goto('/tables/Made_for_admin');
    assert.deepEqual(await shown(), []);
    await page.goto('/tables/Made_for_admin/meta');
    assert.match(await page.locator('body').innerText(), /"?TableStatus"?: "?ACTIVE/);
    await page.goto('/');
    const row = page.locator('#table-list li[data-table-name="Made_for_admin"]');
    await row.getByText('Delete').click();
    await row.waitFor({ state: 'detached' });
  });
});
