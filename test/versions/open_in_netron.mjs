// SPDX-License-Identifier: Apache-2.0
// node open_in_netron.mjs NETRON_PACKAGE FILE...: opens files with Netron's own readers, without a window, and prints for
// each a line of JSON: {"format": ..., "graphs": [{"name", "inputs", "outputs", "operators": [...]}]} or {"error": ...}.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, ...files] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(folder, name)).href);
const { FileStream } = await load('node.js');
const { ModelFactoryService } = await load('view.js');

const host = {
    require: (id) => load(`${id}.js`),
    asset: (file) => fs.readFileSync(path.join(folder, file), 'utf-8'),
    error: () => {},
    exception: () => {},
    event: () => {},
    environment: () => null,
};
const contextOf = (file) => {
    const stat = fs.statSync(file);
    return {
        identifier: path.basename(file),
        stream: new FileStream(file, 0, stat.size, stat.mtimeMs),
        entries: new Map(),
        require: host.require,
        asset: host.asset,
        error: host.error,
        fetch: () => { throw new Error('no other file'); },
    };
};

for (const file of files) {
    let line;
    try {
        const model = await new ModelFactoryService(host).open(contextOf(file));
        const graphs = (model.modules || model.graphs).map((graph) => ({
            name: graph.name,
            inputs: graph.inputs.length,
            outputs: graph.outputs.length,
            operators: graph.nodes.map((node) => node.type.name),
        }));
        line = { format: model.format, graphs };
    } catch (error) {
        line = { error: error.message };
    }
    console.log(JSON.stringify(line));
}
