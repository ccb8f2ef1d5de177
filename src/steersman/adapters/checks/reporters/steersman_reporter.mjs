// A reporter for `node --test`: tells each test with its file as JSON lines, named as node's own JUnit report names it.
// It runs in the runner's process, where no test file is loaded.
export default async function* report(source) {
  const open = [];
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      while (open.length && open[open.length - 1].nesting >= data.nesting) open.pop();
      if (open.length) open[open.length - 1].holds = true;
      open.push({ name: data.name, nesting: data.nesting, holds: false });
    } else if (type === 'test:pass' || type === 'test:fail') {
      while (open.length && open[open.length - 1].nesting > data.nesting) open.pop();
      const self = open.pop();
      const holds = (self && self.holds) || (data.details && data.details.type === 'suite');
      const skipped = data.skip !== undefined || data.todo !== undefined;
      const outcome = type === 'test:fail' && !skipped ? 'failed' : skipped ? 'skipped' : 'passed';
      const above = open.map((test) => test.name);
      yield JSON.stringify([holds ? 'suite' : 'test', above, data.name, outcome, data.file || '']) + '\n';
    } else if (type === 'test:stderr' || type === 'test:stdout') {
      for (const line of String(data.message).split('\n')) {
        if (line.startsWith('steersman-replaced ')) yield JSON.stringify(['replaced', line.slice(19)]) + '\n';
      }
    }
  }
  yield JSON.stringify(['ended']) + '\n';
}
