/** Rules on the structure of these sources: imports, folders of the graph, sizes and effects of components. */
import ts from "typescript";
import { expect, it } from "vitest";

const COMPONENT_LINES_MAX = 120;
const FILES = import.meta.glob<string>("./**/*.{ts,tsx}", { eager: true, query: "?raw", import: "default" });

/** Syntax trees by path below src/, without generated types. */
const SOURCES = new Map(
  Object.entries(FILES)
    .filter(([path]) => !path.endsWith(".d.ts"))
    .map(([path, text]) => [
      path.slice(2),
      ts.createSourceFile(
        path,
        text,
        ts.ScriptTarget.Latest,
        true,
        path.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS,
      ),
    ]),
);
const PRODUCT = [...SOURCES].filter(([path]) => !path.includes(".test.") && !path.startsWith("testing/"));

/** The imports of each file, including types, re-exports and dynamic imports. */
const IMPORTS = new Map([...SOURCES].map(([path, source]) => [path, importsOf(path, source)]));

function importsOf(path: string, source: ts.SourceFile): string[] {
  const found: string[] = [];
  each(source, (node) => {
    const named =
      ts.isImportDeclaration(node) || ts.isExportDeclaration(node)
        ? node.moduleSpecifier
        : ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
          ? node.arguments[0]
          : undefined;
    const target = named && ts.isStringLiteral(named) ? fileOf(path, named.text) : undefined;
    if (target) found.push(target);
  });
  return found;
}

function fileOf(importer: string, name: string): string | undefined {
  if (!name.startsWith(".") && !name.startsWith("@/")) return undefined;
  const base = name.startsWith("@/") ? new URL(name.slice(2), "file:///") : new URL(name, `file:///${importer}`);
  const path = base.pathname.slice(1).replace(/\/$/, "");
  return [`${path}.ts`, `${path}.tsx`, path ? `${path}/index.ts` : "index.ts"].find((one) => SOURCES.has(one));
}

function each(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  ts.forEachChild(node, (child) => each(child, visit));
}

/** All named functions, at any depth. */
function functionsOf(source: ts.SourceFile): { name: string; node: ts.FunctionLikeDeclaration }[] {
  const found: { name: string; node: ts.FunctionLikeDeclaration }[] = [];
  each(source, (node) => {
    if (!ts.isFunctionDeclaration(node) && !ts.isFunctionExpression(node) && !ts.isArrowFunction(node)) return;
    const named = node.name ?? (ts.isVariableDeclaration(node.parent) ? node.parent.name : undefined);
    if (named && ts.isIdentifier(named)) found.push({ name: named.text, node });
  });
  return found;
}

const isComponent = (name: string) => /^[A-Z]/.test(name);
const isHook = (name: string) => /^use[A-Z]/.test(name);

function circles(): string[][] {
  const found: string[][] = [];
  const [index, low] = [new Map<string, number>(), new Map<string, number>()];
  const stack: string[] = [];
  const visit = (file: string) => {
    index.set(file, index.size);
    low.set(file, index.size - 1);
    stack.push(file);
    for (const target of IMPORTS.get(file) ?? []) {
      if (!index.has(target)) visit(target);
      if (stack.includes(target)) low.set(file, Math.min(low.get(file) as number, low.get(target) as number));
    }
    if (low.get(file) !== index.get(file)) return;
    const part = stack.splice(stack.indexOf(file));
    if (part.length > 1) found.push(part);
  };
  for (const file of IMPORTS.keys()) if (!index.has(file)) visit(file);
  return found;
}

it("has no import circles", () => {
  expect(SOURCES.size).toBeGreaterThan(300);
  expect([...IMPORTS.values()].flat().length).toBeGreaterThan(1500);
  expect(circles()).toEqual([]);
});

it("finds every file that an import names", () => {
  const missing = [...SOURCES].flatMap(([path, source]) =>
    source.statements.flatMap((one) =>
      ts.isImportDeclaration(one) &&
      ts.isStringLiteral(one.moduleSpecifier) &&
      /^(\.|@\/)/.test(one.moduleSpecifier.text) &&
      !/(\.(css|json|svg)(\?\w+)?|\/schema)$/.test(one.moduleSpecifier.text) &&
      !fileOf(path, one.moduleSpecifier.text)
        ? [`${path}: ${one.moduleSpecifier.text}`]
        : [],
    ),
  );
  expect(missing).toEqual([]);
});

/** Each folder may import itself and the folders before it. */
const GRAPH = ["model", "layout", "routing", "render"];

it("builds the graph in layers: model, layout, routing, render", () => {
  const upward = [...IMPORTS].flatMap(([path, targets]) => {
    const from = GRAPH.indexOf(/^graph\/(\w+)\//.exec(path)?.[1] ?? "");
    if (from < 0 || path.includes(".test.")) return [];
    return targets
      .filter((target) => GRAPH.indexOf(/^graph\/(\w+)\//.exec(target)?.[1] ?? "") > from)
      .map((target) => `${path} imports ${target}`);
  });
  expect(upward).toEqual([]);
});

it("imports no feature into what features share", () => {
  const shared = /^(api|components|graph|i18n|stream|values)\//;
  const wrong = PRODUCT.filter(([path]) => shared.test(path)).flatMap(([path]) =>
    (IMPORTS.get(path) ?? [])
      .filter((target) => target.startsWith("features/"))
      .map((target) => `${path} imports ${target}`),
  );
  expect(wrong).toEqual([]);
});

it("keeps components short", () => {
  const long = PRODUCT.flatMap(([path, source]) =>
    functionsOf(source)
      .filter(({ name }) => isComponent(name))
      .map(({ name, node }) => {
        const line = (at: number) => source.getLineAndCharacterOfPosition(at).line;
        return { name: `${path}: ${name}`, lines: line(node.end) - line(node.getStart()) + 1 };
      })
      .filter(({ lines }) => lines > COMPONENT_LINES_MAX),
  );
  expect(long).toEqual([]);
});

it("assigns nothing to objects while a component renders", () => {
  const found = PRODUCT.flatMap(([path, source]) =>
    functionsOf(source)
      .filter(({ name, node }) => (isComponent(name) || isHook(name)) && node.body && ts.isBlock(node.body))
      .flatMap(({ name, node }) => assignmentsIn(node.body as ts.Block).map((text) => `${path}: ${name}: ${text}`)),
  );
  expect(found).toEqual([]);
});

/** Assignments to members of objects in the body itself, not in functions inside it. */
function assignmentsIn(body: ts.Block): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node) => {
    if (ts.isFunctionLike(node)) return;
    if (
      ts.isBinaryExpression(node) &&
      node.operatorToken.kind === ts.SyntaxKind.EqualsToken &&
      (ts.isPropertyAccessExpression(node.left) || ts.isElementAccessExpression(node.left))
    )
      found.push(node.getText().slice(0, 60));
    ts.forEachChild(node, visit);
  };
  ts.forEachChild(body, visit);
  return found;
}
