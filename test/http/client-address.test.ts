/** Whom a request comes from, behind proxies and without (R34, RFC 7239). */

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import * as fc from 'fast-check';
import { createClientAddress } from '../../dist/http/client-address.js';

const clientAddress = createClientAddress(['10.0.0.0/8', '192.0.2.7', '2001:db8:f::/48']);

function addressOf(remoteAddress: string, headers: Readonly<Record<string, string>>): string {
  return clientAddress({ remoteAddress, header: (name) => headers[name] });
}

const proxy = '10.0.0.1';

suite('a connection that is no trusted proxy', () => {
  for (const address of ['11.0.0.1', '192.0.2.8', '2001:db8:e::1']) {
    test(`is the client itself, whatever it says: ${address}`, () => {
      const headers = { forwarded: 'for=1.2.3.4', 'x-forwarded-for': '1.2.3.4' };
      assert.equal(addressOf(address, headers), address);
    });
  }

  test('has one address, however it is written', () => {
    assert.equal(addressOf('::ffff:11.0.0.1', {}), '11.0.0.1');
    assert.equal(addressOf('::ffff:b00:1', {}), '11.0.0.1');
    assert.equal(addressOf('2001:DB8:0:0::0:1', {}), '2001:db8::1');
  });

  test('has none once it is gone', () => {
    assert.equal(addressOf('', { 'x-forwarded-for': '1.2.3.4' }), '');
  });
});

suite('a trusted proxy', () => {
  for (const [name, peer] of [
    ['in a network', proxy],
    ['by its address', '192.0.2.7'],
    ['over IPv6', '2001:db8:f::1'],
    ['as IPv4 written as IPv6', '::ffff:10.9.8.7'],
  ] as const) {
    test(`is believed: ${name}`, () => {
      assert.equal(addressOf(peer, { 'x-forwarded-for': '1.2.3.4' }), '1.2.3.4');
    });
  }

  for (const [listed, client] of [
    ['1.2.3.4', '1.2.3.4'],
    ['6.6.6.6, 1.2.3.4', '1.2.3.4'],
    ['not an address, 1.2.3.4', '1.2.3.4'],
    ['6.6.6.6, 1.2.3.4, 10.3.3.3, 2001:db8:f::2', '1.2.3.4'],
    ['10.0.0.9, 10.3.3.3', '10.0.0.9'],
    [`6.6.6.6, 10.0.0.8${', 10.3.3.3'.repeat(18)}`, '6.6.6.6'],
    [`6.6.6.6, 10.0.0.8${', 10.3.3.3'.repeat(19)}`, '10.0.0.8'],
    ['1.2.3.4:5678', '1.2.3.4'],
    ['[2001:db8::1]:5678', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['2001:DB8::0:1', '2001:db8::1'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['1.2.3.4,', proxy],
    ['', proxy],
    ['1.2.3.4, unknown', proxy],
    ['1.2.3.4, 01.2.3.4', proxy],
    ['1.2.3.4, 1.2.3.4.5', proxy],
    ['1.2.3.4, 1.2.3.4:port', proxy],
    ['1.2.3.4, example.org', proxy],
  ] as const) {
    test(`X-Forwarded-For: ${listed} → ${client}`, () => {
      assert.equal(addressOf(proxy, { 'x-forwarded-for': listed }), client);
    });
  }

  for (const [forwarded, client] of [
    ['for=1.2.3.4', '1.2.3.4'],
    ['For="1.2.3.4:4711"', '1.2.3.4'],
    ['FOR="[2001:db8:cafe::17]:4711"', '2001:db8:cafe::17'],
    ['for="\\1.2.3.4"', '1.2.3.4'],
    ['proto=https;for=1.2.3.4;by=10.0.0.2;host="a,b;for=6.6.6.6"', '1.2.3.4'],
    ['for=6.6.6.6, for=1.2.3.4 , for=10.3.3.3;proto=http', '1.2.3.4'],
    ['for=6.6.6.6,for="1.2.3.4:_port"', '1.2.3.4'],
    ['for=1.2.3.4, for=unknown', proxy],
    ['for=1.2.3.4, for="_hidden"', proxy],
    ['for=1.2.3.4, for=_SEVKISEK', proxy],
    ['for=1.2.3.4, proto=https', proxy],
    ['for=1.2.3.4,', proxy],
    ['for=1.2.3.4;x="', proxy],
    ['for=6.6.6.6;x=", for="[2001:db8::1]"', proxy],
    ['for=6.6.6.6 for=1.2.3.4', proxy],
    ['for = 1.2.3.4', proxy],
    ['1.2.3.4', proxy],
    ['', proxy],
  ] as const) {
    test(`Forwarded: ${forwarded} → ${client}`, () => {
      assert.equal(addressOf(proxy, { forwarded }), client);
    });
  }

  test('that names two clients is believed for neither', () => {
    const one = { forwarded: 'for=1.2.3.4', 'x-forwarded-for': '1.2.3.4' };
    assert.equal(addressOf(proxy, one), '1.2.3.4');
    assert.equal(addressOf(proxy, { ...one, forwarded: 'for=6.6.6.6' }), proxy);
    assert.equal(addressOf(proxy, { ...one, forwarded: 'for=unknown' }), proxy);
  });
});

test('whatever a client sends in front, what the proxy adds is the client or nothing is', () => {
  const added = [', for=1.2.3.4', ', for="1.2.3.4"', ', for="1.2.3.4";by="10.0.0.1"'];
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc
          .array(fc.constantFrom('for=', '"', '6.6.6.6', ',', ';', '\\', ' '))
          .map((a) => a.join('')),
      ),
      fc.constantFrom(...added),
      (sent, rest) => {
        assert.ok(['1.2.3.4', proxy].includes(addressOf(proxy, { forwarded: sent + rest })));
        assert.equal(addressOf(proxy, { 'x-forwarded-for': `${sent}, 1.2.3.4` }), '1.2.3.4');
      },
    ),
  );
});

test('of sixteen kilobytes of quotes only the end is read', () => {
  const forwarded = 'for="'.repeat(3_000);
  assert.equal(addressOf(proxy, { forwarded }), proxy);
  assert.equal(addressOf(proxy, { forwarded: `${'x="";'.repeat(3_000)}for=1.2.3.4` }), proxy);
});
