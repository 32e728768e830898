import { CircleAlert, TriangleAlert } from "lucide-react";

export interface ProblemMark {
  severity: "error" | "warning";
  /** The messages, one per line. */
  text: string;
}

/** Sign of a node or an edge that has problems; its messages are shown on hover, and read by screen readers. */
export function ProblemSign({ problem }: { problem: ProblemMark }) {
  const Icon = problem.severity === "error" ? CircleAlert : TriangleAlert;
  return (
    <span
      lang="en"
      title={problem.text}
      className={`pointer-events-auto flex size-5 items-center justify-center rounded-full bg-raised ${problem.severity === "error" ? "text-failed" : "text-waiting"}`}
    >
      <Icon className="size-4" aria-hidden />
      <span className="sr-only">{problem.text}</span>
    </span>
  );
}
