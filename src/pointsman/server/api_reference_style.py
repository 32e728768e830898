"""How the page of the API looks, in light and in dark."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#57606a;--line:#d0d7de;--back:#fff;--code:#f3f5f7;--link:#0b57d0;
--get:#0a5c36;--post:#0b4fa8;--put:#7a4a00;--delete:#a3123f}
@media (prefers-color-scheme:dark){:root{--ink:#e6e8eb;--dim:#a5adb6;--line:#3a424c;--back:#14181d;--code:#1f252c;
--link:#8ab4f8;--get:#7ee2a8;--post:#9cc4ff;--put:#f2c078;--delete:#ff9db5}}
*{box-sizing:border-box}
body{margin:0;color:var(--ink);background:var(--back);font:15px/1.5 system-ui,sans-serif;display:grid;
grid-template:"head head" auto "nav main" 1fr/17rem minmax(0,1fr)}
header{grid-area:head;padding:1.5rem 2rem 1rem;border-bottom:1px solid var(--line)}
h1{margin:0;font-size:1.5rem}h1 small{color:var(--dim);font-size:.9rem;font-weight:400}
h2{margin:2.5rem 0 .25rem;text-transform:capitalize}h3{margin:0;font-size:1.05rem}
h3 a{color:inherit;text-decoration:none}
nav{grid-area:nav;position:sticky;top:0;align-self:start;max-height:100vh;overflow:auto;padding:1rem;
border-right:1px solid var(--line);font-size:.85rem}
nav ul{list-style:none;margin:0 0 .75rem;padding:0}nav a{display:block;padding:.3rem .25rem;text-decoration:none}
nav summary{text-transform:capitalize;font-weight:600;padding:.3rem 0}
main{grid-area:main;padding:0 2rem 4rem;max-width:64rem}
section{margin:1rem 0;padding:1rem;border:1px solid var(--line);border-radius:.5rem;scroll-margin-top:1rem}
section:target{border-color:var(--link);outline:2px solid var(--link)}
a{color:var(--link)}:focus-visible{outline:2px solid var(--link);outline-offset:2px}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:1rem;background:var(--back);padding:.5rem}
.address{margin:.25rem 0;overflow-wrap:anywhere}b{font-size:.8em}
.get{color:var(--get)}.post{color:var(--post)}.put,.patch{color:var(--put)}.delete{color:var(--delete)}
code,pre{font:13px/1.5 ui-monospace,monospace}code{background:var(--code);padding:.1em .3em;border-radius:.25em}
pre{background:var(--code);padding:.75rem;border-radius:.4rem;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere}
table{width:100%;border-collapse:collapse;margin:.75rem 0;font-size:.88rem}
caption{text-align:left;color:var(--dim);padding:.25rem 0}
th,td{text-align:left;vertical-align:top;padding:.3rem .75rem .3rem 0;border-top:1px solid var(--line);
overflow-wrap:anywhere}
th{color:var(--dim);font-weight:500}details{margin:.4rem 0}summary{cursor:pointer;min-height:1.6rem}
@media (max-width:48rem){body{display:block}
nav{position:static;max-height:18rem;border:0;border-bottom:1px solid var(--line)}
header,main{padding-left:1rem;padding-right:1rem}table,tbody,tr,td{display:block}thead{display:none}
tr{border-top:1px solid var(--line);padding:.4rem 0}td{border:0;padding:0}td:first-child{font-weight:600}}
""".replace("\n", "")
