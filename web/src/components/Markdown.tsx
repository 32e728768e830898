/** Render Markdown that models write: without their HTML and without images from other hosts. Finished blocks are not
 * rendered again. */
import { Check, Copy as CopyIcon } from "lucide-react";
import { memo, type ReactNode, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { copyToClipboard } from "./clipboard";
import "./markdown.css";

const PLUGINS = [remarkGfm];
const FENCE = /^\s{0,3}(```+|~~~+)/;

export default function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return (
    <div className="markdown">
      {blocks.map((block, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: text only grows, and blocks keep their positions
        <Block key={at} text={block} />
      ))}
    </div>
  );
}

/** Memoized: while text streams in, only the last block changes. */
const Block = memo(function Block({ text }: { text: string }) {
  return (
    <ReactMarkdown remarkPlugins={PLUGINS} components={PARTS} skipHtml>
      {text}
    </ReactMarkdown>
  );
});

/** Split into blocks that can be rendered separately: at blank lines outside of fences; indented lines stay with the
 * block before. */
export function blocksOf(text: string): string[] {
  const found: string[] = [];
  let block: string[] = [];
  let fence = "";
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1];
    if (mark && !fence) fence = mark;
    else if (mark && line.trim().startsWith(fence) && line.trim() === mark) fence = "";
    const isBreak = !fence && block.length > 0 && block.at(-1)?.trim() === "" && /^[^\s\-*+>|\d]/.test(line);
    if (isBreak) {
      found.push(block.join("\n"));
      block = [];
    }
    block.push(line);
  }
  if (block.length > 0) found.push(block.join("\n"));
  return found;
}

const PARTS: Components = {
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noreferrer noopener nofollow">
      {children}
    </a>
  ),
  // An image becomes a link: the page must not fetch an address because a model wrote it.
  img: ({ src, alt }) => (
    <a href={typeof src === "string" ? src : ""} target="_blank" rel="noreferrer noopener nofollow">
      {alt || src}
    </a>
  ),
  pre: ({ children }) => <Code>{children}</Code>,
  table: ({ children }) => (
    <div className="overflow-x-auto">
      <table>{children}</table>
    </div>
  ),
};

function Code({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const box = useRef<HTMLPreElement>(null);
  const [done, setDone] = useState(false);
  const copy = async () => {
    if (!(await copyToClipboard(box.current?.textContent ?? "")))
      return void getSelection()?.selectAllChildren(box.current as Node);
    setDone(true);
    setTimeout(() => setDone(false), 2_000);
  };
  return (
    <div className="relative">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard */}
      <pre ref={box} tabIndex={0}>
        {children}
      </pre>
      <button
        type="button"
        onClick={() => void copy()}
        aria-label={t("chat.copyCode")}
        title={t("chat.copyCode")}
        className="absolute top-1 right-1 flex size-7 items-center justify-center rounded bg-surface text-ink-soft hover:text-ink"
      >
        {done ? <Check className="size-4 text-done" aria-hidden /> : <CopyIcon className="size-4" aria-hidden />}
      </button>
    </div>
  );
}
