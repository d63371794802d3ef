import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Fills a heap of so many MB with trees, maps and arrays and dumps it: BigHeap MB FILE [REFERRERS]. So many
 * objects refer to one object.
 */
public class BigHeap {
  static class Leaf {
    long a, b;
    Object ref;

    Leaf(long i, Object ref) {
      a = i;
      b = ~i;
      this.ref = ref;
    }
  }

  static class Tree {
    Tree left, right;
    Leaf[] leaves;
    byte[] pad;
  }

  static class Spoke {
    Object hub;

    Spoke(Object hub) {
      this.hub = hub;
    }
  }

  static final List<Object> ROOT = new ArrayList<>();

  static Tree tree(int depth, Random random) {
    Tree tree = new Tree();
    tree.pad = new byte[random.nextInt(64)];
    if (depth > 0) {
      tree.left = tree(depth - 1, random);
      tree.right = tree(depth - 1, random);
    } else {
      tree.leaves = new Leaf[16];
      for (int i = 0; i < 16; i++) {
        tree.leaves[i] = new Leaf(i, i % 3 == 0 ? "s" + random.nextInt(1000) : tree);
      }
    }
    return tree;
  }

  static long used() {
    Runtime runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }

  public static void main(String[] args) throws Exception {
    long bytes = Long.parseLong(args[0]) << 20;
    Random random = new Random(1);
    if (args.length > 2) {
      Object[] hub = new Object[1];
      Spoke[] spokes = new Spoke[Integer.parseInt(args[2])];
      for (int i = 0; i < spokes.length; i++) {
        spokes[i] = new Spoke(hub);
      }
      ROOT.add(spokes);
    }
    while (used() < bytes) {
      ROOT.add(tree(10, random));
      Map<Integer, Object> map = new HashMap<>();
      for (int i = 0; i < 20_000; i++) {
        map.put(i, new int[random.nextInt(32)]);
      }
      ROOT.add(map);
      ROOT.add(new long[100_000]);
    }
    ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class).dumpHeap(args[1], true);
  }
}
