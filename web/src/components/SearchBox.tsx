import { Search } from "lucide-react";

export function SearchBox(props: { value: string; onChange: (words: string) => void; label: string }) {
  return (
    <div className="relative max-sm:w-full">
      <Search aria-hidden className="absolute top-2 left-2.5 size-4 text-ink-faint" />
      <input
        type="search"
        value={props.value}
        maxLength={200}
        onChange={(event) => props.onChange(event.target.value)}
        placeholder={props.label}
        aria-label={props.label}
        className="h-8 w-full rounded-md border border-line-strong bg-surface pr-2 pl-8 sm:w-64"
      />
    </div>
  );
}
