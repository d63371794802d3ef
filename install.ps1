<#
.SYNOPSIS
Installs heaptap for the current user, without a compiler.

.DESCRIPTION
Gets the archive of a release, compares its SHA-256 with SHA256SUMS of the same release, and places
heaptap.exe, completions, documentation and licenses below the prefix. Nothing outside of the prefix
changes.

.PARAMETER From
Directory or URL that has the files of a release; {version} in it is the version. The variable
HEAPTAP_FROM has the same meaning.

.PARAMETER Version
Another version than that of this script.

.PARAMETER Prefix
Where heaptap is installed. Default: %LOCALAPPDATA%\heaptap

.PARAMETER Uninstall
Removes what was installed below the prefix.
#>
[CmdletBinding()]
param(
    [string]$From = $env:HEAPTAP_FROM,
    [string]$Version = '',
    [string]$Prefix = (Join-Path $env:LOCALAPPDATA 'heaptap'),
    [switch]$Uninstall
)
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
# Windows PowerShell draws a progress bar that slows downloads down.
$ProgressPreference = 'SilentlyContinue'

# A release fills these in.
$address = '@ADDRESS@'
$released = '@VERSION@'
if ($address.StartsWith('@')) { $address = ''; $released = '' }

$target = 'x86_64-pc-windows-msvc'
# .NET does not know the current location of PowerShell.
$Prefix = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Prefix)
# Paths of the installed files below the prefix; directories that were made for them end in /.
$list = Join-Path $Prefix 'installed.txt'

function Stop-Install([string]$message) {
    [Console]::Error.WriteLine("install.ps1: $message")
    exit 1
}

if ($Uninstall) {
    if (-not (Test-Path -LiteralPath $list -PathType Leaf)) {
        Stop-Install "no heaptap was installed below $Prefix (no installed.txt)"
    }
    $paths = @(Get-Content -LiteralPath $list -Encoding UTF8)
    foreach ($path in $paths) {
        if (-not $path -or $path.Contains('..') -or [IO.Path]::IsPathRooted($path)) {
            Stop-Install "$list has a path that this script does not write: $path"
        }
    }
    foreach ($path in $paths) {
        $file = Join-Path $Prefix $path
        if (-not $path.EndsWith('/') -and (Test-Path -LiteralPath $file)) {
            Remove-Item -LiteralPath $file -Force
        }
    }
    Remove-Item -LiteralPath $list -Force
    if (Test-Path -LiteralPath "$list.new") { Remove-Item -LiteralPath "$list.new" -Force }
    $directories = @($paths | Where-Object { $_.EndsWith('/') } | Sort-Object -Descending)
    foreach ($directory in @($directories | ForEach-Object { Join-Path $Prefix $_ }) + $Prefix) {
        if ((Test-Path -LiteralPath $directory) -and
            -not (Get-ChildItem -LiteralPath $directory -Force | Select-Object -First 1)) {
            Remove-Item -LiteralPath $directory -Force
        }
    }
    Write-Output "removed: heaptap below $Prefix"
    exit 0
}

if ($From) { $address = $From }
if (-not $address) {
    Stop-Install 'this script has no address; use -From DIR or URL, or build with: cargo install --path .'
}
if ($address.Contains('{version}')) {
    if (-not $Version) { $Version = $released }
    if (-not $Version) { Stop-Install "$address needs -Version" }
}
$Version = $Version -replace '^v', ''
if ($Version -notmatch '^[0-9A-Za-z.-]*$') { Stop-Install "not a version: $Version" }
$base = $address.Replace('{version}', $Version).TrimEnd('/')

$stage = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
New-Item -ItemType Directory -Path $stage | Out-Null
try {
    function Get-ReleaseFile([string]$name) {
        $goal = Join-Path $stage $name
        try {
            if ($base -match '^https?://') {
                [Net.ServicePointManager]::SecurityProtocol = `
                    [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
                Invoke-WebRequest -UseBasicParsing -Uri "$base/$name" -OutFile $goal
            } else {
                Copy-Item -LiteralPath (Join-Path $base $name) -Destination $goal
            }
        } catch {
            Stop-Install "cannot get $base/${name}: $($_.Exception.Message)"
        }
        $goal
    }

    $sums = @{}
    foreach ($line in Get-Content -LiteralPath (Get-ReleaseFile 'SHA256SUMS')) {
        if ($line -match "^([0-9a-f]{64})  (heaptap-[0-9A-Za-z.-]*-$target\.zip)$") {
            $sums[$Matches[2]] = $Matches[1]
        }
    }
    $names = @($sums.Keys | Where-Object { -not $Version -or $_ -eq "heaptap-$Version-$target.zip" })
    if ($names.Count -eq 0) { Stop-Install "$base has no archive of heaptap $Version for $target" }
    if ($names.Count -gt 1) { Stop-Install "$base has several versions; choose one with -Version" }
    $name = $names[0]
    $archive = Get-ReleaseFile $name
    $actual = (Get-FileHash -LiteralPath $archive -Algorithm SHA256).Hash.ToLowerInvariant()
    if ($actual -ne $sums[$name]) {
        Stop-Install ("$name is damaged or was changed: its SHA-256 is $actual, " +
            "SHA256SUMS has $($sums[$name]). Nothing was installed")
    }
    Expand-Archive -LiteralPath $archive -DestinationPath (Join-Path $stage 'archive')
    $folder = Join-Path (Join-Path $stage 'archive') ($name -replace '\.zip$', '')
    & (Join-Path $folder 'heaptap.exe') --version | Out-Null
    if ($LASTEXITCODE -ne 0) { Stop-Install "the program of $name does not run here" }

    $files = [ordered]@{
        'heaptap.exe'                = 'bin/heaptap.exe'
        'completions/_heaptap.ps1'   = 'completions/_heaptap.ps1'
        'LICENSE-APACHE'             = 'LICENSE-APACHE'
        'LICENSE-MIT'                = 'LICENSE-MIT'
        'THIRD-PARTY-LICENSES.txt'   = 'THIRD-PARTY-LICENSES.txt'
    }
    Get-ChildItem -LiteralPath $folder -Filter '*.md' -File -Name | ForEach-Object { $files[$_] = $_ }
    foreach ($top in 'docs', 'configs', 'benches') {
        Get-ChildItem -LiteralPath (Join-Path $folder $top) -Recurse -File -Name | ForEach-Object {
            $path = "$top/" + $_.Replace('\', '/')
            $files[$path] = $path
        }
    }
    $installed = New-Object System.Collections.Generic.List[string]
    # What an earlier version installed is removed by -Uninstall too.
    if (Test-Path -LiteralPath $list) {
        $installed.AddRange([string[]]@(Get-Content -LiteralPath $list -Encoding UTF8))
    }
    # The directories of the files, each after the one above it.
    $directories = @($files.Values | ForEach-Object {
        for ($at = $_.IndexOf('/'); $at -ge 0; $at = $_.IndexOf('/', $at + 1)) { $_.Substring(0, $at) }
    } | Sort-Object -Unique)
    foreach ($directory in $directories) {
        if (-not (Test-Path -LiteralPath (Join-Path $Prefix $directory))) {
            $installed.Add("$directory/")
        }
    }
    foreach ($path in $files.Values) {
        # The program that is replaced is renamed, and stays while it runs.
        $installed.AddRange([string[]]@($path, "$path.new", "$path.old"))
    }
    # The list is there before the files: an install that is interrupted can be uninstalled.
    if (-not (Test-Path -LiteralPath $Prefix)) {
        New-Item -ItemType Directory -Path $Prefix | Out-Null
    }
    $unique = [string[]]@($installed | Sort-Object -Unique)
    [IO.File]::WriteAllLines("$list.new", $unique)
    Move-Item -LiteralPath "$list.new" -Destination $list -Force
    foreach ($directory in $directories) {
        $path = Join-Path $Prefix $directory
        if (-not (Test-Path -LiteralPath $path)) {
            New-Item -ItemType Directory -Path $path | Out-Null
        }
    }
    foreach ($file in $files.GetEnumerator()) {
        $goal = Join-Path $Prefix $file.Value
        Copy-Item -LiteralPath (Join-Path $folder $file.Key) -Destination "$goal.new" -Force
        if (Test-Path -LiteralPath $goal) {
            # A program that runs cannot be replaced, but it can be renamed.
            $old = "$goal.old"
            if (Test-Path -LiteralPath $old) { Remove-Item -LiteralPath $old -Force }
            Move-Item -LiteralPath $goal -Destination $old -Force
            Move-Item -LiteralPath "$goal.new" -Destination $goal
            Remove-Item -LiteralPath $old -Force -ErrorAction SilentlyContinue
        } else {
            Move-Item -LiteralPath "$goal.new" -Destination $goal
        }
    }

    $program = Join-Path $Prefix 'bin\heaptap.exe'
    Write-Output "installed: $(& $program --version) in $(Join-Path $Prefix 'bin')"
    if (($env:PATH -split ';') -notcontains (Join-Path $Prefix 'bin')) {
        Write-Output "note: $(Join-Path $Prefix 'bin') is not in PATH"
    }
    if (-not (Get-Command adb -ErrorAction SilentlyContinue)) {
        Write-Output "note: adb was not found; recording from a phone needs Android's platform-tools"
    }
} finally {
    Remove-Item -LiteralPath $stage -Recurse -Force -ErrorAction SilentlyContinue
}
