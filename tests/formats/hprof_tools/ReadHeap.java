// Reads heap dumps with VisualVM's library; prints a line of sums for each.

import java.io.File;
import java.util.List;
import java.util.TreeMap;
import org.graalvm.visualvm.lib.jfluid.heap.GCRoot;
import org.graalvm.visualvm.lib.jfluid.heap.Heap;
import org.graalvm.visualvm.lib.jfluid.heap.HeapFactory;
import org.graalvm.visualvm.lib.jfluid.heap.Instance;
import org.graalvm.visualvm.lib.jfluid.heap.JavaClass;
import org.graalvm.visualvm.lib.jfluid.heap.ObjectArrayInstance;
import org.graalvm.visualvm.lib.jfluid.heap.ObjectFieldValue;

public class ReadHeap {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Heap heap = HeapFactory.createHeap(new File(file));
            TreeMap<String, Long> counts = new TreeMap<>();
            long instances = 0;
            for (JavaClass of : heap.getAllClasses()) {
                counts.merge(of.getName(), (long) of.getInstancesCount(), Long::sum);
                instances += of.getInstancesCount();
            }
            long references = 0;
            for (JavaClass of : heap.getAllClasses()) {
                for (Instance instance : of.getInstances()) {
                    if (instance instanceof ObjectArrayInstance array) {
                        for (Instance value : array.getValues()) {
                            references = sum(references, instance, value);
                        }
                        continue;
                    }
                    for (Object field : instance.getFieldValues()) {
                        if (field instanceof ObjectFieldValue value) {
                            references = sum(references, instance, value.getInstance());
                        }
                    }
                }
            }
            List<GCRoot> roots = (List<GCRoot>) heap.getGCRoots();
            System.out.println("roots " + roots.size() + " instances " + instances
                    + " classes " + counts.hashCode() + " references " + references);
        }
    }

    static long sum(long sum, Instance from, Instance to) {
        return sum + from.getInstanceId() * 31 + (to == null ? 0 : to.getInstanceId());
    }
}
