/** One attack until its input ends, as a process of its own. Argument: JSON of attacks.mjs. */

import { shapes } from './shapes.mjs';

const { shape, connections, target } = JSON.parse(process.argv[2]);
process.stdin.resume().once('end', () => process.exit());
await shapes[shape].attack(connections)(target);
