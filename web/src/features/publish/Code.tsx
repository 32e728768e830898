import { CopyButton } from "@/components/CopyButton";

/** A text to copy, such as code, with its name. */
export function Code({ name, text }: { name: string; text: string }) {
  return (
    <div>
      <p className="flex items-center justify-between">
        <span className="font-medium">{name}</span>
        <CopyButton text={text} name={name} />
      </p>
      <pre className="rounded-md bg-sunken p-3 font-mono text-xs whitespace-pre-wrap wrap-anywhere">{text}</pre>
    </div>
  );
}

/** A short text to copy in one line, such as an address. */
export function CopyLine({ name, text, href }: { name: string; text: string; href?: string }) {
  return (
    <p className="flex flex-wrap items-center gap-x-2">
      <span className="min-w-24 font-medium">{name}</span>
      {href ? (
        <a href={href} target="_blank" rel="noreferrer" className="font-mono text-xs break-all underline">
          {text}
        </a>
      ) : (
        <code className="text-xs break-all">{text}</code>
      )}
      <CopyButton text={text} name={name} />
    </p>
  );
}
