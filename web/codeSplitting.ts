/** The files into which the build puts modules. A request for each small module would cost more than its content, so
 * the modules that several pages share come in few files:
 *
 *   base      what every page loads
 *   common    what lists and dialogs share, without modules of the files below
 *   details   what shows values, executions, gates and parts of workflows
 *   graph     what draws graphs
 *
 * Modules of one page or dialog are in its own file, as are the parts of forms and text editors, which load on demand.
 */
interface Chunking {
  getModuleInfo(id: string): { importedIds: readonly string[] } | null;
}

const SHARED_LIBRARIES = "lucide-react|@?radix-ui|@tanstack|@xyflow|d3-|zustand|zundo|classcat";
const ON_DEMAND = /[\\/](@codemirror|@lezer|@rjsf|@cfworker|react-markdown)[\\/]/;
const GRAPH = /[\\/](@xyflow|d3-[a-z]+|graph[\\/](render|layout))[\\/]/;
const DETAILS = /[\\/](features[\\/](?!workflows|templates)[a-z]+|src[\\/](graph|values)|virtual-core)[\\/]/;

/** All modules that load with a module, itself included. */
function loadedWith(id: string, chunking: Chunking, found = new Set<string>()): Set<string> {
  if (!found.has(id)) {
    found.add(id);
    for (const next of chunking.getModuleInfo(id)?.importedIds ?? []) loadedWith(next, chunking, found);
  }
  return found;
}

/** Name the file of a shared module by all that it loads, so that no file imports a larger one. */
function sharedFile(id: string, chunking: Chunking): string | null {
  const loaded = [...loadedWith(id, chunking)];
  if (loaded.some((one) => ON_DEMAND.test(one))) return null;
  if (loaded.some((one) => GRAPH.test(one))) return "graph";
  return loaded.some((one) => DETAILS.test(one)) ? "details" : "common";
}

export const codeSplitting = {
  includeDependenciesRecursively: false,
  groups: [
    {
      name: "base",
      tags: ["$initial" as const],
      test: /preload-helper|[\\/](src[\\/](?!api-reference|main)|node_modules[\\/](?!swagger-ui))/,
      priority: 1,
    },
    {
      name: sharedFile,
      debugName: "shared",
      test: new RegExp(`[\\\\/](src[\\\\/](?!api-reference|main|i18n)|node_modules[\\\\/](${SHARED_LIBRARIES}))`),
      minShareCount: 2,
    },
  ],
};
