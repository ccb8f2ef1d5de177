// Loaded first in every process of `node --test`: says at its end which functions of the runner a test has replaced.
'use strict';
if (process.env.NODE_TEST_CONTEXT) {
  const write = process.stderr.write.bind(process.stderr);
  const watched = ['assert', 'node:test'].map((name) => {
    const module = require(name);
    return [name, module, Object.entries(module).filter(([, value]) => typeof value === 'function')];
  });
  process.on('exit', () => {
    for (const [name, module, functions] of watched) {
      for (const [key, value] of functions) {
        if (module[key] !== value) write(`steersman-replaced ${name}.${key}\n`);
      }
    }
  });
}
